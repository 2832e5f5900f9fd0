"""The gateway's configuration for the SDK suites: one pool, and places where things go wrong.

What goes wrong has providers, models and combos of its own per suite, because a limit that is used
up or a breaker that opened in one test must not be met by another.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from tests.sdk.matrix import DIALECTS, EMBEDDING_DIALECTS, MODELS

SUITES: Final = ("sync", "async", "node")
APP_KEY: Final = "sk-gw-app-0123456789"
NARROW_KEY: Final = "sk-gw-narrow-0123456789"
FORBIDDEN: Final = "blind"  # exists, but not for the narrow client
MAX_BODY_BYTES: Final = 1_048_576


class PoolPlan:
    """Collects providers, keys, models and combos."""

    def __init__(self) -> None:
        self.providers: dict[str, Any] = {}
        self.keys: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.combos: list[dict[str, Any]] = []

    def route(self, provider: str, base_url: str, model: str, **facts: Any) -> str:
        """Add a provider with one key and one model; give the route's id."""
        self.providers[provider] = {"dialect": "openai", "base_url": base_url}
        self.keys.append(
            {"id": f"{provider}-key", "provider": provider, "secret": f"upstream-{provider}"}
        )
        self.models.append({"provider": provider, "model": model, "vision": True, **facts})
        return f"{provider}/{model}"

    def combo(self, name: str, *members: str) -> None:
        """Add a combo that tries its members in order."""
        self.combos.append(
            {"id": name, "family": "classic", "strategy": "priority", "members": list(members)}
        )


def configuration(simulator_url: str, mirror_url: str) -> dict[str, Any]:
    """The configuration, without addresses and Redis."""
    plan = PoolPlan()
    plan.combo(
        "auto",
        plan.route("alpha", simulator_url, "one"),
        plan.route("beta", simulator_url, "two"),
    )
    plan.combo("blind", plan.route("blind", simulator_url, "text-only", vision=False))
    plan.combo("mirror", plan.route("mirror", mirror_url, "echo"))
    plan.route("vectors", simulator_url, "small", embedding={"family": "small", "dimensions": 16})
    plan.route("falling-vectors", simulator_url, "spare", embedding={"family": "small"})
    for suite in SUITES:
        add_traps(plan, suite, simulator_url)
    for suite in ("node-messages", "node-gemini", "node-responses"):
        plan.combo(
            f"{suite}-limited",
            plan.route(f"{suite}-limited", simulator_url, "limited", limits={"rpm": 1}),
        )
        plan.combo(f"{suite}-cut", plan.route(f"{suite}-cut", simulator_url, "cut"))
    return {
        "providers": plan.providers,
        "keys": plan.keys,
        "models": plan.models,
        "combos": plan.combos,
        "default_combo": "auto",
        "auth": {"mode": "keys"},
        "clients": [
            client("app", APP_KEY, ["*"]),
            client("narrow", NARROW_KEY, ["auto"]),
            *(client(f"{suite}-bounded", bounded_key(suite), ["*"], rpm=2) for suite in SUITES),
            *(
                client(f"{suite}-spent", spent_key(suite), ["*"], monthly_tokens=5)
                for suite in SUITES
            ),
        ],
    }


def add_traps(plan: PoolPlan, suite: str, simulator_url: str) -> None:
    """Add what one suite needs for its errors; nobody else asks for these."""

    def route(name: str, **facts: Any) -> str:
        return plan.route(f"{suite}-{name}", simulator_url, name, **facts)

    plan.combo(f"{suite}-limited", route("limited", limits={"rpm": 1}))
    plan.combo(f"{suite}-single", route("single", limits={"concurrency": 1}))
    plan.combo(f"{suite}-leaving", route("leaving", limits={"concurrency": 1}))
    plan.combo(f"{suite}-hasty", route("hasty", limits={"concurrency": 1}))
    plan.combo(f"{suite}-broken", route("broken-1"), route("broken-2"))
    # One of its own for each test that lets them fail: the third failure opens a breaker.
    plan.combo(f"{suite}-picky", route("picky-1"), route("picky-2"))
    plan.combo(f"{suite}-down", route("down-1"), route("down-2"))
    plan.combo(f"{suite}-falling", route("falling-1"), route("falling-2"))
    plan.combo(f"{suite}-degraded", route("degraded"))
    plan.combo(f"{suite}-cut", route("cut"))
    plan.combo(f"{suite}-silent", route("silent"))


def client(name: str, key: str, combos: list[str], **limits: int) -> dict[str, Any]:
    """A client of the configuration."""
    digest = sha256(key.encode()).hexdigest()
    return {"id": name, "key_sha256": digest, "combos": combos, "detail": True, "limits": limits}


def bounded_key(suite: str) -> str:
    """The key of a client that may ask twice a minute."""
    return f"sk-gw-bounded-{suite}-0123456789"


def spent_key(suite: str) -> str:
    """The key of a client whose month has no room for any request."""
    return f"sk-gw-spent-{suite}-0123456789"


def add_responses(config: dict[str, Any], base_url: str) -> None:
    """Add a combo of one route that speaks the Responses API."""
    config["providers"]["responses"] = {"dialect": "openai-responses", "base_url": base_url}
    config["keys"].append({"id": "responses-key", "provider": "responses", "secret": "upstream"})
    config["models"].append({"provider": "responses", "model": "native", "vision": True})
    config["combos"].append(
        {
            "id": "responses",
            "family": "classic",
            "strategy": "priority",
            "members": ["responses/native"],
        }
    )


def add_dialects(config: dict[str, Any], base_url: Callable[[str], str]) -> None:
    """Add a combo `<dialect>-<model>` for each answer of an upstream of every dialect.

    Args:
        config: what is added to.
        base_url: where that upstream speaks a dialect.
    """
    for dialect in DIALECTS:
        config["providers"][dialect] = {"dialect": dialect, "base_url": base_url(dialect)}
        config["keys"].append({"id": f"{dialect}-key", "provider": dialect, "secret": "upstream"})
        for model in MODELS:
            config["models"].append({"provider": dialect, "model": model})
            config["combos"].append(
                {
                    "id": f"{dialect}-{model}",
                    "family": "classic",
                    "strategy": "priority",
                    "members": [f"{dialect}/{model}"],
                }
            )
    for dialect in EMBEDDING_DIALECTS:
        family = {"family": f"{dialect}-embed"}
        config["models"].append({"provider": dialect, "model": "embed", "embedding": family})
