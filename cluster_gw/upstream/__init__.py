"""The HTTP client shell: the only place that opens an upstream connection."""
