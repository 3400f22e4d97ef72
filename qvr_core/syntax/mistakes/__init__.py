"""What is wrong with a text that cannot be read, in the user's words."""
