"""One short file per LSP method: find the snapshot, convert the position, ask `qvr_core.ide`, convert back."""
