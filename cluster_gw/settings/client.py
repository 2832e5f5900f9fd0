"""The section that describes clients: apps with keys of their own."""

from typing import Annotated, Final

from msgspec import Meta

from cluster_gw.settings.sections import MAX_ENTRIES, Count, Id, Name, Score, Section

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$")]
MAX_PREVIOUS: Final = 8


class ClientLimits(Section, frozen=True, kw_only=True):
    """Bounds of one client; None is not limited. But for `key_share` over everything it calls.

    Attributes:
        rpm: requests a minute.
        tpm: tokens a minute.
        concurrency: requests at the same time.
        monthly_tokens: tokens a calendar month (UTC).
        monthly_usd: USD a calendar month (UTC), at the models' prices.
        key_share: how much of `rpm`, `rpd`, `tpm` and `tpd` of each key, model and account it may
            take, rounded down, but one request at least: 0.5 is half of each; 1 is all.
    """

    rpm: Count | None = None
    tpm: Count | None = None
    concurrency: Count | None = None
    monthly_tokens: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    monthly_usd: Score | None = None
    key_share: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None


class PreviousKey(Section, frozen=True, kw_only=True):
    """A key that another one has taken the place of.

    Attributes:
        key_sha256: SHA-256 of it, in hexadecimal.
        until_ms: when it is refused, ms since the epoch.
    """

    key_sha256: Sha256
    until_ms: Annotated[int, Meta(ge=0, le=10**15)]


class ClientSettings(Section, frozen=True, kw_only=True):
    """An app with its own key; only the SHA-256 of the key is known here.

    Attributes:
        id: its name in logs and Redis.
        key_sha256: SHA-256 of its key, in hexadecimal; the key itself is not known here.
        previous_keys: keys that it had before and that are still taken for a while.
        limits: bounds over everything it calls.
        combos: combo ids it may name, with their members; aliases (`auto:smart`) and groups by
            their name; or `*` for everything including routes.
        detail: whether it may ask for rankings and attempts.
        enabled: whether its keys are taken at all.
    """

    id: Id
    key_sha256: Sha256
    previous_keys: Annotated[tuple[PreviousKey, ...], Meta(max_length=MAX_PREVIOUS)] = ()
    limits: ClientLimits = ClientLimits()
    combos: Annotated[tuple[Name, ...], Meta(max_length=MAX_ENTRIES)] = ("*",)
    detail: bool = False
    enabled: bool = True
