"""What each operation is: one record, from which every room reads what it wants to know."""
