"""What a simulated provider is: its keys, limits, models and tempo. Values only, no behaviour."""

import hashlib
from typing import Annotated

import msgspec

NonNegative = Annotated[int, msgspec.Meta(ge=0)]
Delay = Annotated[float, msgspec.Meta(ge=0)]
Speed = Annotated[float, msgspec.Meta(gt=0)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one scope; `None` means unlimited. Windows slide: 60 s and 24 h."""

    rpm: NonNegative | None = None
    rpd: NonNegative | None = None
    tpm: NonNegative | None = None
    tpd: NonNegative | None = None
    concurrency: NonNegative | None = None


class KeyLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one key, and further ones for single models under that key.

    `label` names the key in statistics and fault matches, so that no secret is shown there.
    """

    label: str = ""
    models: dict[str, Limits] = {}


class SimulatorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set on a simulated provider.

    Args:
        name: what fault matches call this provider.
        port: 0 lets the system choose.
        keys: secret to limits. A secret outside it is answered 401 unless `any_key` is set;
            then it gets `default_limits`, and so does a request without any.
        models: what `GET /v1/models` lists. Other names are 404 unless `any_model` is set;
            names that spell a fault (`fault-status-503`) are always served.
        latency_ms: time before the response headers, plus up to `jitter_ms`.
        ttft_ms: time from the headers to the first token; buffered answers wait for it too.
        tokens_per_s: speed of the tokens after the first; `None` is at once.
        output_tokens: length of an answer nobody asked a length of.
        seed: changes every generated answer.
        enforce: answer 429 above a limit; otherwise only count the violation.
        remembered_ids: how many directive ids the statistics keep, the newest.
    """

    name: str = "sim"
    host: str = "127.0.0.1"
    port: Port = 0
    keys: dict[str, KeyLimits] = {}
    any_key: bool = False
    default_limits: Limits = Limits()
    models: tuple[str, ...] = ("sim-small", "sim-large", "sim-embed")
    any_model: bool = False
    latency_ms: Delay = 0.0
    jitter_ms: Delay = 0.0
    ttft_ms: Delay = 0.0
    tokens_per_s: Speed | None = None
    output_tokens: NonNegative = 16
    embedding_dimensions: Annotated[int, msgspec.Meta(ge=1, le=8192)] = 16
    seed: int = 0
    enforce: bool = True
    max_body_bytes: NonNegative = 33_554_432
    remembered_ids: Annotated[int, msgspec.Meta(ge=1)] = 100_000

    def __post_init__(self) -> None:
        labels = [rule.label for rule in self.keys.values() if rule.label]
        if len(labels) != len(set(labels)):
            raise ValueError("two keys share a label")


def key_label(config: SimulatorConfig, secret: str) -> str:
    """Name of a key in statistics and fault matches: its label, else a digest of the secret."""
    if not secret:
        return "no-key"
    rule = config.keys.get(secret)
    if rule is not None and rule.label:
        return rule.label
    return "key-" + hashlib.blake2b(secret.encode(), digest_size=5).hexdigest()
