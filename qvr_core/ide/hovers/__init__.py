"""The parts of a hover: names that a program binds, words of the language and calls at their place."""
