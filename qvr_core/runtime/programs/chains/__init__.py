"""Elements that depend on earlier ones: how they are made from what moves them, and in which order."""
