"""Looks every few seconds at what other workers know of models that are not well."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.model_health import ModelHealth, ModelName

LOOK_S: Final = 5.0


class HealthWatch:
    """Keeps what this worker knows of models up to date.

    Args:
        health: where it is read and kept.
        models: gives every model of the configuration in force.
    """

    def __init__(self, health: ModelHealth, models: Callable[[], Iterable[ModelName]]) -> None:
        self._health = health
        self._models = models

    async def look(self) -> None:
        """Look once; while Redis is away what was known is believed on."""
        with contextlib.suppress(StoreLostError):
            await self._health.refresh(self._models())
