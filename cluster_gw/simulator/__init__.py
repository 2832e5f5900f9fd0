"""A provider that really enforces limits and injects faults."""
