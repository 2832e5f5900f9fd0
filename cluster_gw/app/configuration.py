"""The configuration in force in this worker: its file, and the overlay over it.

Either may change. Each change is checked as a whole and swapped in with one assignment, or leaves
everything as it was; nothing that is learned or counted lives here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cluster_gw.app.base import Base as Tools
from cluster_gw.app.serving import build_serving
from cluster_gw.background.config_watch import ConfigWatch
from cluster_gw.errors import faults_of
from cluster_gw.pipeline.targets import NO_TARGETS
from cluster_gw.server.serving import Current, Serving
from cluster_gw.settings import Settings
from cluster_gw.settings.key_secrets import Unsealed, unseal
from cluster_gw.settings.loading import Base
from cluster_gw.settings.overlay import Dropped, Merged, Table, merge, patches_of, read_table
from cluster_gw.settings.shown import show
from cluster_gw.store.overlays import NO_OVERLAY, Overlay, Overlays, config_version
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry

FILE, RUN_TIME = "file", "run_time"
"""Where the secret of a key comes from."""


class Configuration:
    """Keeps both, and what they make together.

    Args:
        base: the file.
        log: where events go.
        registry: where numbers go.

    Attributes:
        current: what requests see; the parts of the worker hold it.
        base: the file as it is now.
        overlay: what is over it.
        table: the same, read.
        secrets: of keys, as far as they were set at run time.

    Raises:
        ConfigInvalidError: the file cannot be used.
    """

    def __init__(self, base: Base, *, log: Log, registry: Registry) -> None:
        self.base, self.overlay = base, NO_OVERLAY
        self.table: Table = {}
        self._log, self._registry = log, registry
        self._merged = merge(base, ())
        self.secrets = unseal(self._merged.loaded, ())
        self._shown: Mapping[str, Any] | None = None
        self._listeners: list[Callable[[], None]] = []
        self.current = Current(
            build_serving(self.settings, self.version, NO_TARGETS, base.version, self.secrets)
        )
        registry.on_read(self._read)
        self._fit_log()

    @property
    def version(self) -> int:
        """`config_version`: that of the overlay, the same for whoever has the same overlay."""
        return config_version(self.overlay)

    @property
    def settings(self) -> Settings:
        """What holds."""
        return self.secrets.settings

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator should see of it."""
        return self._merged.loaded.warnings

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The patches that do not fit this worker's file."""
        return self._merged.dropped

    def shown(self) -> Mapping[str, Any]:
        """What holds, as an operator may see it."""
        if self._shown is None:
            self._shown = show(self.settings)
        return self._shown

    def when_changed(self, tell: Callable[[], None]) -> None:
        """Have `tell` called after each change, before any request sees it."""
        self._listeners.append(tell)

    def reload(self, read: Callable[[], Base]) -> None:
        """Take over a changed file, or keep the old one and say why."""
        try:
            base = read()
            merged = merge(base, patches_of(self.table))
            secrets = unseal(merged.loaded, merged.kept)
            serving = self._serving(secrets, base, self.overlay)
        except Exception as error:  # noqa: BLE001 - a file, even with a bug of ours, ends no worker
            self._refuse(error)
            return
        self.base = base
        self._put_in_force(merged, secrets, serving)

    def take_over(self, overlay: Overlay) -> None:
        """Take over another overlay, but for what does not fit; other text changes nothing."""
        try:
            table = read_table(overlay.patches)
            merged = merge(self.base, patches_of(table))
            secrets = unseal(merged.loaded, merged.kept)
            serving = self._serving(secrets, self.base, overlay)
        except Exception as error:  # noqa: BLE001 - as above: whatever stands in Redis
            self._refuse(error)
            return
        self.overlay, self.table = overlay, table
        self._put_in_force(merged, secrets, serving)

    def _serving(self, secrets: Unsealed, base: Base, overlay: Overlay) -> Serving:
        """What requests would see of both."""
        before = self.current.serving.runtime.targets
        version = config_version(overlay)
        return build_serving(secrets.settings, version, before, base.version, secrets)

    def _refuse(self, error: Exception) -> None:
        self._registry.add(catalog.CONFIG_RELOADS, "refused")
        self._log.event(events.CONFIG_REFUSED, faults=faults_of(error))

    def _put_in_force(self, merged: Merged, secrets: Unsealed, serving: Serving) -> None:
        before = {one.patch.name: one.faults for one in self._merged.dropped}
        past, self.secrets = self.secrets, secrets
        self._merged, self._shown = merged, None
        self._fit_log()
        self.current.serving = serving
        for tell in self._listeners:
            tell()
        self._registry.add(catalog.CONFIG_RELOADS, "applied")
        self._log.event(
            events.CONFIG_LOADED,
            config_version=self.version,
            file_version=self.base.version,
        )
        for one in merged.dropped:
            if before.get(one.patch.name) != one.faults:
                self._log.event(
                    events.CONFIG_PATCH_DROPPED, patch=one.patch.name, faults=list(one.faults)
                )
        self._tell_of_secrets(past)

    def _tell_of_secrets(self, past: Unsealed) -> None:
        """Log what is new: secrets that hold, that are gone, and that cannot be read."""
        now = self.secrets
        for key, cause in now.unread.items():
            if past.unread.get(key) is not cause:
                self._log.event(events.SECRET_UNREAD, key=key, cause=cause.value)
        for key in {**past.set_at_ms, **now.set_at_ms}:
            if past.set_at_ms.get(key) != now.set_at_ms.get(key):
                source = RUN_TIME if key in now.set_at_ms else FILE
                self._log.event(events.SECRET_TAKEN, key=key, source=source)

    def _read(self) -> None:
        put = self._registry.put
        put(catalog.CONFIG_PATCHES_DROPPED, value=len(self._merged.dropped))
        put(catalog.SECRETS_UNREAD, value=len(self.secrets.unread))
        for event, count in self._log.limit.left_out.items():
            put(catalog.LOG_LINES_SUPPRESSED, event, value=count)

    def _fit_log(self) -> None:
        limit = self.settings.telemetry.log_limit
        self._log.limit.fit(limit.per_s, limit.burst)


def watch_config(base: Tools, overlays: Overlays) -> ConfigWatch:
    """Watch what is changed of the configuration; what is unusual goes to the log."""
    log, worker = base.log, base.worker_id
    return ConfigWatch(
        overlays,
        on_unreadable=lambda detail: log.event(
            events.CONFIG_UNREADABLE, worker=worker, detail=detail
        ),
        on_restored=lambda version: log.event(
            events.CONFIG_RESTORED, worker=worker, overlay_version=version
        ),
        on_superseded=lambda version: log.event(
            events.CONFIG_SUPERSEDED, worker=worker, overlay_version=version
        ),
    )
