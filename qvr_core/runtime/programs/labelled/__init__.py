"""Values that say what their axes and elements are called."""
