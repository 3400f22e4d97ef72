"""What commands write: diagnostics as text, runs side by side, chosen rows, small drawings."""
