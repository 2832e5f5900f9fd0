"""Looks every few seconds at what other workers know of models and providers in trouble."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.model_health import ModelHealth, ModelName
from cluster_gw.store.provider_health import ProviderHealth

LOOK_S: Final = 5.0


class HealthWatch:
    """Keeps what this worker knows of models and providers up to date.

    Args:
        health: where models are read and kept.
        providers: the same for whole providers.
        models: gives every model of the configuration in force.
        hosts: gives everything of it that fails as a whole.
    """

    def __init__(
        self,
        health: ModelHealth,
        providers: ProviderHealth,
        models: Callable[[], Iterable[ModelName]],
        hosts: Callable[[], Iterable[str]],
    ) -> None:
        self._health = health
        self._providers = providers
        self._models = models
        self._hosts = hosts

    async def look(self) -> None:
        """Look once; while Redis is away what was known is believed on."""
        with contextlib.suppress(StoreLostError):
            await self._health.refresh(list(self._models()))
            await self._providers.refresh(self._hosts())
