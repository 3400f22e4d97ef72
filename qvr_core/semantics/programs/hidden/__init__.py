"""What stands below a hidden chain beside what is observed."""
