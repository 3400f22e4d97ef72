"""The language server of QVR: wiring between editors and `qvr_core`."""

from qvr_core import __version__ as __version__
