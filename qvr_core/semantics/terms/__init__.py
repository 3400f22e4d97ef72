"""Terms: finite trees that a file declares as data types."""
