"""The driver: what is checked again after an edit, what a whole file can tell, where a diagnostic stands."""
