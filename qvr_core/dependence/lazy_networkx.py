"""networkx, loaded: import this when nobody waits for it.  Then `at_hand` of the package is true."""

from importlib import import_module

import_module("networkx")
LOADED = True
