"""Configurations for groups of workers."""

from typing import Any


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
