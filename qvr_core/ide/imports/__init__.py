"""What other files declare: names that imports bring, and questions that several files answer."""
