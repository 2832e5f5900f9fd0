"""The Redis shell: the only place that imports redis."""
