"""QVR: a typed probabilistic language, from its text to torch. See `syntax` for the first layer."""

__version__ = "0.1.0"
