"""Recorded traffic as a simulation asks it again: when each request came, and how large it was.

A line is JSON: of the gateway's own log (`request.finished`), or with `at_ms`, `input_tokens` and
`output_tokens`. Nothing else of a request is read.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Final

import msgspec

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.simulation.scenario import Asking, Recorded
from cluster_gw.units import MS_PER_S

FINISHED: Final = "request.finished"
MOST_LINES: Final = 1_000_000
SHOWN_FAULTS: Final = 10
LAST_S: Final = 1.0
"""How long a run goes on after the last request came, at least."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a line."""

    event: str | None = None
    timestamp: dt.datetime | None = None
    at_ms: float | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    client: str = ""


LINES: Final = msgspec.json.Decoder(Line)


def read_traffic(lines: Iterable[bytes], asking: Asking) -> Asking:
    """Give who asks in a scenario, as it was recorded.

    Args:
        lines: JSON each; blank ones and other events of the log are passed over.
        asking: of the scenario: how tokens are shared between request and answer where a line tells
            their sum only.

    Raises:
        ConfigInvalidError: a line cannot be used, or there is none; faults begin with its number.
    """
    faults: list[str] = []
    found: list[tuple[float, int, int]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            read = LINES.decode(line)
        except msgspec.MsgspecError as fault:
            faults.append(f"line {number}: {fault}")
            continue
        if read.event not in {None, FINISHED}:
            continue
        at_s = _instant(read)
        tokens = _tokens(read, asking)
        if at_s is None or tokens is None:
            faults.append(f"line {number}: needs at_ms or timestamp, and tokens")
        else:
            found.append((at_s, *tokens))
    if not found and not faults:
        faults.append("no request is recorded there")
    if len(found) > MOST_LINES:
        faults.append(f"more than {MOST_LINES} requests are recorded there")
    if faults:
        more = len(faults) - SHOWN_FAULTS
        raise ConfigInvalidError(
            [*faults[:SHOWN_FAULTS], *([f"and {more} more"] if more > 0 else [])]
        )
    found.sort()
    begin_s = found[0][0]
    recorded = tuple(
        Recorded(at_s=at_s - begin_s, input_tokens=asked, output_tokens=answered)
        for at_s, asked, answered in found
    )
    return msgspec.structs.replace(
        asking,
        recorded=recorded,
        requests=len(recorded),
        duration_s=recorded[-1].at_s + max(LAST_S, asking.deadline_s),
    )


def _instant(line: Line) -> float | None:
    if line.at_ms is not None:
        return line.at_ms / MS_PER_S
    return None if line.timestamp is None else line.timestamp.timestamp()


def _tokens(line: Line, asking: Asking) -> tuple[int, int] | None:
    if line.input_tokens is not None and line.output_tokens is not None:
        return max(1, line.input_tokens), max(1, line.output_tokens)
    if line.tokens is None:
        return None
    share = asking.input_tokens / (asking.input_tokens + asking.output_tokens)
    asked = round(line.tokens * share)
    return max(1, asked), max(1, line.tokens - asked)
