"""Configurations for groups of workers."""

from typing import Any

from tests.fakes.group import SimulatedProvider


def one_model(base_url: str, **limits: int) -> dict[str, Any]:
    """One provider, one key, one model, one combo that is the default."""
    return {
        "providers": {"a": {"dialect": "openai", "base_url": base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": "sim-small", "limits": limits}],
        "combos": [{"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}],
        "default_combo": "auto",
    }


def chat(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A request body."""
    return {"messages": [{"role": "user", "content": text}], **fields}


def foreign_url(provider: SimulatedProvider) -> str:
    """A provider's address that does not look local: keys of a local one rest for 5 s only."""
    return provider.base_url.replace("127.0.0.1", "127.1")
