"""A small valid configuration, and ways to change one thing of it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import Loaded, load_bytes

SHA = "0123456789abcdef" * 4


@pytest.fixture
def base() -> dict[str, Any]:
    """A configuration without a fault and without a warning."""
    return {
        "providers": {
            "local": {"base_url": "http://127.0.0.1:9001/v1", "keyless": True},
            "far": {"base_url": "https://far.example/v1/"},
        },
        "keys": [{"id": "far-a", "provider": "far", "secret": "env:FAR_KEY"}],
        "models": [
            {"provider": "far", "model": "big"},
            {"provider": "local", "model": "small"},
        ],
        "combos": [{"id": "auto"}],
        "clients": [{"id": "app", "key_sha256": SHA}],
    }


ENVIRON: Mapping[str, str] = {"FAR_KEY": "sk-far-private"}


@pytest.fixture
def load(base: dict[str, Any]) -> Callable[..., Loaded]:
    """Loads a document, the base one by default, with an environment on top of the usual one."""

    def load_document(document: Any = None, **environ: str) -> Loaded:
        data = msgspec.json.encode(base if document is None else document)
        return load_bytes(data, {**ENVIRON, **environ})

    return load_document


@pytest.fixture
def faults(load: Callable[..., Loaded]) -> Callable[..., list[str]]:
    """Gives the faults of a document instead of raising them; empty when there is none."""

    def faults_of(document: Any = None, **environ: str) -> list[str]:
        try:
            load(document, **environ)
        except ConfigInvalidError as error:
            return list(error.faults)
        return []

    return faults_of
