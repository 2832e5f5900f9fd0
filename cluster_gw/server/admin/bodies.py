"""What calls of the admin API take in their bodies."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from cluster_gw.server.admin.shapes import Closed
from cluster_gw.settings.client import ClientLimits
from cluster_gw.settings.pool import MemberSettings
from cluster_gw.settings.sections import Id, Name, Ratio


class ClientChange(Closed, frozen=True, kw_only=True):
    """Fields of a client; null goes back to what the file says."""

    enabled: bool | None = None
    limits: ClientLimits | None = None
    combos: tuple[Name, ...] | None = None
    detail: bool | None = None


class NewClient(ClientChange, frozen=True, kw_only=True):
    """A client that is to be made."""

    id: Id


class NewSecret(Closed, frozen=True, kw_only=True):
    """A credential of a provider, itself; with `anyway`, although workers cannot read it."""

    secret: Annotated[str, Meta(min_length=1, max_length=8192)]
    anyway: bool = False


class Bench(Closed, frozen=True, kw_only=True):
    """For how long a key rests, in s."""

    for_s: Annotated[float, Meta(ge=1, le=86_400)] = 600.0


class Rotation(Closed, frozen=True, kw_only=True):
    """For how long the key before is still taken, in s."""

    grace_s: Annotated[float, Meta(ge=0, le=2_592_000)] = 86_400.0


class DrainOrder(Closed, frozen=True, kw_only=True):
    """Whom: a worker, all, or with neither the workers of this group."""

    worker: str | None = None
    all: bool = False


class HeadroomChange(Closed, frozen=True, kw_only=True):
    """Null goes back to what the file says; the older names are taken, too."""

    ramp_start: Ratio | None = None
    floor: Ratio | None = None
    routing_headroom_ramp_start: Ratio | None = None
    routing_headroom_floor: Ratio | None = None


class ThresholdsChange(Closed, frozen=True, kw_only=True):
    """Fields of some sections; null goes back to what the file says."""

    breaker: dict[str, Any] | None = None
    cooldown: dict[str, Any] | None = None
    penalty: dict[str, Any] | None = None
    bench: dict[str, Any] | None = None
    degraded: dict[str, Any] | None = None
    peek: dict[str, Any] | None = None
    attempts: dict[str, Any] | None = None


class ChainEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A route in its place; those that are not named come after it."""

    route: str
    enabled: bool = True
    priority: float | None = None


class RoutingChange(Closed, frozen=True, kw_only=True):
    """Fields of how a combo ranks, and of what tunes all combos."""

    combo: str | None = None
    strategy: str | None = None
    weights: dict[str, float] | None = None
    custom_weights: dict[str, float] | None = None
    explore_enabled: bool | None = None
    explore_unmeasured: float | None = None
    key_selection: str | None = None
    peak_hours: dict[str, Any] | None = None
    cooldown_ceiling_ms: float | None = None
    task_weight_share: float | None = None


class CheckOrder(Closed, frozen=True, kw_only=True):
    """Which keys: all, those of a provider, or one."""

    provider: str | None = None
    key: str | None = None


class KeyChange(Closed, frozen=True, kw_only=True):
    """Fields of a key; null goes back to what the file says."""

    enabled: bool | None = None
    models: tuple[str, ...] | None = None
    limits: dict[str, Any] | None = None
    caps: dict[str, Any] | None = None


class ModelChange(Closed, frozen=True, kw_only=True):
    """Fields of a model; null goes back to what the file says."""

    enabled: bool | None = None
    weight: float | None = None
    tier: str | None = None
    intelligence_rank: int | None = None
    speed_rank: int | None = None
    context_window: int | None = None
    tools: bool | None = None
    vision: bool | None = None
    limits: dict[str, Any] | None = None
    monthly_tokens: int | str | None = None
    quality_hint: float | None = None


class ComboChange(Closed, frozen=True, kw_only=True):
    """Fields of a combo; null goes back to what the file says."""

    family: str | None = None
    strategy: str | None = None
    weights: dict[str, float] | None = None
    members: str | tuple[str | MemberSettings, ...] | None = None
    sticky: dict[str, Any] | None = None
    strategy_options: dict[str, Any] | None = None
    response: dict[str, Any] | None = None


class NewProfile(ComboChange, frozen=True, kw_only=True):
    """A profile that is to be made."""

    id: str
