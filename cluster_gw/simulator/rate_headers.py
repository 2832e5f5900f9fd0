"""The headers in which the imitated provider tells how much of its limits is left."""

from cluster_gw.simulator.meter import RateHeaders
from cluster_gw.simulator.reply import Headers
from cluster_gw.units import MINUTE_S, MS_PER_S


def duration_text(seconds: float) -> str:
    """A duration as the provider writes it: `20ms`, `1.5s`, `6m0s`."""
    if seconds < 1:
        return f"{max(round(seconds * MS_PER_S), 0)}ms"
    minutes, rest_s = divmod(round(seconds, 3), MINUTE_S)
    return f"{minutes:.0f}m{rest_s:g}s" if minutes else f"{rest_s:g}s"


def rate_headers(requests: RateHeaders | None, tokens: RateHeaders | None) -> Headers:
    """`x-ratelimit-{limit,remaining,reset}-{requests,tokens}` for the limits there are."""
    headers: list[tuple[str, str]] = []
    for noun, standing in (("requests", requests), ("tokens", tokens)):
        if standing is not None:
            headers.append((f"x-ratelimit-limit-{noun}", str(standing.limit)))
            headers.append((f"x-ratelimit-remaining-{noun}", str(standing.remaining)))
            headers.append((f"x-ratelimit-reset-{noun}", duration_text(standing.reset_s)))
    return tuple(headers)
