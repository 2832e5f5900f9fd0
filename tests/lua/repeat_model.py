"""Idempotency keys as plain values: what the scripts below `lua/idempotency` must do."""

from typing import Final

import msgspec

AFTER_MS: Final = 540_000
LEASE_MAX_MS: Final = 60_000
Reply = list[int | str]


class Record(msgspec.Struct, kw_only=True):
    """One key and its feed."""

    body: str = ""
    token: int = 0
    until_ms: int = 0
    state: str = ""
    is_followed: bool = False
    answer: str = ""
    feed: list[str] = []


class Model:
    """All that stands in Redis of one key; time passes by calls."""

    def __init__(self) -> None:
        self.record = Record()

    def ask(
        self,
        body: str,
        *,
        now_ms: int,
        lease_ms: int,
        may_take: bool,
        token: int,
        known: int | None,
    ) -> Reply:
        record = self.record
        if record.state in ("held", "kept") and record.body != body:
            return [0, "conflict"]
        if record.state == "kept":
            return [2, "kept", record.token, record.answer]
        left_ms = record.until_ms - now_ms
        if record.state == "held" and 0 < left_ms <= LEASE_MAX_MS:
            pieces: list[str] = []
            if known is not None and token in (0, record.token):
                record.is_followed = True
                pieces = record.feed[known:]
            return [0, "held", record.token, left_ms, *pieces]
        if not may_take:
            return [0, "none"]
        self.record = Record(
            body=body,
            token=max(record.token + 1, now_ms),
            until_ms=now_ms + lease_ms,
            state="held",
        )
        return [1, "ok", self.record.token]

    def go_on(self, token: int, *, now_ms: int, lease_ms: int, at: int, pieces: list[str]) -> Reply:
        record = self.record
        if record.state != "held" or record.token != token:
            return [0, "stale"]
        if pieces and len(record.feed) < at:
            return [0, "none"]
        record.until_ms = now_ms + lease_ms
        if pieces and len(record.feed) > at:
            return [2, "ok", int(record.is_followed)]
        record.feed = [*record.feed, *pieces]
        return [1, "ok", int(record.is_followed)]

    def keep(self, token: int, answer: str) -> Reply:
        record = self.record
        if record.token != token or record.state not in ("held", "kept"):
            return [0, "stale"]
        if record.state == "kept":
            return [2, "ok"]
        self.record = Record(body=record.body, token=token, state="kept", answer=answer)
        return [1, "ok"]

    def free(self, token: int) -> Reply:
        record = self.record
        if record.token != token or record.state == "kept":
            return [0, "stale"]
        if record.state == "free":
            return [2, "ok"]
        self.record = Record(token=token, state="free")
        return [1, "ok"]
