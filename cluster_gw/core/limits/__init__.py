"""Windows, demand: the arithmetic of what is counted."""
