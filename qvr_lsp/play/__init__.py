"""`qvr play`: the playground's page on this machine, with the server of this process behind it, and runs."""
