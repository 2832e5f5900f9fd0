"""From a request to a ranking of candidates with reasons and exclusions."""
