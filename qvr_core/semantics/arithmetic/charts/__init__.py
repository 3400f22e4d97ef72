"""What deductions read, and what is asked of their charts."""
