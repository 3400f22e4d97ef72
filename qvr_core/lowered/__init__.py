"""A checked program in few forms, which everything that prints it reads."""
