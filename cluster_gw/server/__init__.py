"""Routes, authentication, probes."""
