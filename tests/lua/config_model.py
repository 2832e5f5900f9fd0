"""What `lua/config` does, in plain words: one record that only who saw its version may replace."""

import dataclasses


@dataclasses.dataclass
class OverlayModel:
    """The record, and what was told of it."""

    version: int = 0
    name: str = ""
    patches: str = ""
    told: list[int] = dataclasses.field(default_factory=list)

    def commit(
        self, seen: int, name: str, patches: str, *, least: int, valid_until: int, now_ms: int
    ) -> list[int | str]:
        """Give the reply without its time."""
        if name == self.name:
            return [2, "ok", self.version]
        if seen != self.version:
            return [0, "stale", self.version]
        if 0 < valid_until < now_ms:
            return [0, "late", self.version]
        self.version = max(self.version + 1, least)
        self.name, self.patches = name, patches
        self.told.append(self.version)
        return [1, "ok", self.version]

    def read(self, version: int, name: str) -> list[int | str]:
        """Give the reply without its time."""
        if not self.version:
            return [0, "none", 0, "", ""]
        if (version, name) == (self.version, self.name):
            return [2, "ok", version, "", ""]
        return [1, "ok", self.version, self.name, self.patches]
