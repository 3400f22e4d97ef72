# The one function of it that is called; the library has no types of its own.
import numpy as np

def string_dtype(encoding: str = ..., length: int | None = ...) -> np.dtype[np.object_]: ...
