"""How long calls of scripts took, by script: sums, read when somebody asks for metrics."""


class ScriptTimes:
    """Sums since the start of a worker.

    Attributes:
        calls: how many were answered, by name.
        seconds: from sending to the reply, of all of these together, by name.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    def note(self, script: str, took_s: float) -> None:
        """Add one call."""
        self.calls[script] = self.calls.get(script, 0) + 1
        self.seconds[script] = self.seconds.get(script, 0.0) + took_s
