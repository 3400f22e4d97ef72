"""Other samplers beside ours: their environment, the processes they run in, and what each is asked."""
