"""What a run is on disk and on the wire: settings, protocol, store. Never imports torch."""
