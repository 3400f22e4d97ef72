"""What the files say that a program's data are read from."""
