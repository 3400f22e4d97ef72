"""What a program's last arrow says of an input, without a draw."""
