"""Every process that a test starts may keep the bytecode of this package: compiling it anew costs each 0.2 s."""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
