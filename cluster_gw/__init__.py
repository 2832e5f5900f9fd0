"""cluster-gw: one pool of LLM provider keys, many apps, exact limits through Redis."""

__version__ = "0.1.0"
