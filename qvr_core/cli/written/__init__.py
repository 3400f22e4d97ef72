"""What commands write: diagnostics as text, chosen rows, small drawings."""
