"""What a provider caps over all models of one key, whatever its models allow each.

Days and months are calendar ones in UTC, as the providers count them. Tokens of a day are weighted:
a model of weight 3 uses the cap three times as fast. Redis has the counters (`lua/lib/caps.lua`).
"""

from typing import Final

import msgspec

WEIGHT_SCALE: Final = 1000  # scripts count thousandths, so that weighted sums stay exact
PLAIN_WEIGHT: Final = WEIGHT_SCALE
HEAVIEST: Final = 1000.0


class Caps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Upper bounds of one key over all its models, in UTC's days and months; 0 lifts a preset's.

    Attributes:
        rpm: requests in any 60 s.
        rpd: requests a day.
        tpd: weighted tokens a day.
        monthly_tokens: tokens a month, not weighted.
    """

    rpm: int | None = None
    rpd: int | None = None
    tpd: int | None = None
    monthly_tokens: int | None = None

    def needs_record(self) -> bool:
        """Whether days or months are capped; a minute is counted by the key's window."""
        return (self.rpd, self.tpd, self.monthly_tokens) != (None, None, None)


def overlay_caps(base: Caps, own: Caps) -> Caps:
    """Let the caps somebody set himself win over `base`, cap by cap; 0 lifts one."""
    said = msgspec.structs.asdict(own).items()
    given = {name: value or None for name, value in said if value is not None}
    return msgspec.structs.replace(base, **given)


def scale_weight(weight: float) -> int:
    """Give a model's token weight as the scripts take it: thousandths, rounded."""
    return round(weight * WEIGHT_SCALE)


def implied_weight(cap_tokens: int | None, model_tokens: int | None) -> float:
    """Tell the weight of a model whose own day is smaller than the cap of the key.

    A provider that weighs tokens says of a model how many it allows a day: that is the whole cap at
    the model's weight. 1 where either is not known.
    """
    if not cap_tokens or not model_tokens:
        return 1.0
    return min(cap_tokens / model_tokens, HEAVIEST)


class CapsUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a key has used of its caps; the default is a key that was never used.

    Attributes:
        requests_day: of the present day.
        tokens_day: the same in weighted tokens.
        tokens_month: of the present month, not weighted.
        day_ends_ms: first instant after that day, ms since the epoch; 0 when nothing counts in it.
        month_ends_ms: the same of the month.
    """

    requests_day: int = 0
    tokens_day: float = 0.0
    tokens_month: int = 0
    day_ends_ms: int = 0
    month_ends_ms: int = 0


UNUSED_CAPS: Final = CapsUse()


def caps_use_at(numbers: tuple[int, ...], now_ms: int) -> CapsUse:
    """Tell the use of a key's caps at `now_ms`.

    Args:
        numbers: of the field `now` of its record, in order: day, its end in ms, requests, weighted
            tokens in thousandths, month, its end in ms, tokens, and more.
        now_ms: the server's clock, ms since the epoch.
    """
    _, day_ends_ms, requests, weighted, _, month_ends_ms, tokens = numbers[:7]
    if now_ms >= day_ends_ms:
        requests = weighted = day_ends_ms = 0
    if now_ms >= month_ends_ms:
        tokens = month_ends_ms = 0
    return CapsUse(
        requests_day=requests,
        tokens_day=weighted / WEIGHT_SCALE,
        tokens_month=tokens,
        day_ends_ms=day_ends_ms,
        month_ends_ms=month_ends_ms,
    )
