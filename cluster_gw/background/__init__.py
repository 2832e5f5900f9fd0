"""The task runner and the periodic jobs of a worker."""
