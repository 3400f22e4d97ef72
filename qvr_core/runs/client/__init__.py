"""Starting, watching and cancelling workers: for the command line and the server. Never imports torch."""
