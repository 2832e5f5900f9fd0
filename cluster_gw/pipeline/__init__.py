"""One request from start to end."""
