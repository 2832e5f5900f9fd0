"""The configuration in force: what workers read, and what becomes of a changed file."""

import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from cluster_gw.errors import faults_of
from cluster_gw.settings import Loaded, load, open_shared, write_source
from cluster_gw.supervisor import events
from cluster_gw.supervisor.own_metrics import OwnNumbers
from cluster_gw.supervisor.watch import FileWatch
from cluster_gw.telemetry.events import CONFIG_WARNED
from cluster_gw.telemetry.log import Log

NEEDS_RESTART: Final = (
    "server",
    "redis",
    "telemetry.otlp_endpoint",
    "telemetry.otlp_metrics",
    "telemetry.trace_sample",
    "telemetry.propagate",
)


class Configuration:
    """Keeps the last good configuration; workers see it and never the file.

    Args:
        path: where it came from.
        loaded: what was read there at the start.
        environ: where references and overrides are looked up.
        log: where events go.
        numbers: where reads are counted.

    Attributes:
        fd: descriptor of the memory workers read; stays valid over changes.
        version: of the file in force, from 1; workers read it together with the file.
    """

    def __init__(
        self,
        path: Path,
        loaded: Loaded,
        environ: Mapping[str, str],
        log: Log,
        numbers: OwnNumbers,
    ) -> None:
        self.version = 1
        self.fd = open_shared()
        write_source(self.fd, loaded.source)
        self._path = path
        self._first = loaded
        self._environ = environ
        self._log = log
        self._numbers = numbers
        self._watch = FileWatch(loaded.files)
        self._is_requested = False
        self._told: set[str] = set()

    def request(self) -> None:
        """Have the next look read the file even if it is the same."""
        self._is_requested = True

    def look(self) -> bool:
        """Take over a changed file if it is valid; tell whether workers have to read again."""
        if not self._watch.look() and not self._is_requested:
            return False
        self._is_requested = False
        try:
            loaded = load(self._path, self._environ)
            # With the file: a worker that misses a signal still has the version of what it read.
            source = msgspec.structs.replace(loaded.source, version=self.version + 1)
            write_source(self.fd, source)
        except Exception as error:  # noqa: BLE001 - a file, even with a bug of ours, ends no group
            self._numbers.reloads["kept"] += 1
            self._numbers.is_file_kept = True
            self._log.event(events.CONFIG_KEPT, faults=faults_of(error))
            return False
        self.version += 1
        self._numbers.reloads["changed"] += 1
        self._numbers.is_file_kept = False
        fixed = [
            name
            for name in NEEDS_RESTART
            if attrgetter(name)(loaded.settings) != attrgetter(name)(self._first.settings)
        ]
        self._log.event(events.CONFIG_CHANGED, file_version=self.version, needs_restart=fixed)
        self._warn(loaded)
        self._watch.follow(loaded.files)
        return True

    def warn(self) -> None:
        """Log what an operator should see; each warning once, however many workers there are."""
        self._warn(self._first)

    def close(self) -> None:
        """Give up the memory."""
        os.close(self.fd)

    def _warn(self, loaded: Loaded) -> None:
        for warning in loaded.warnings:
            if warning not in self._told:
                self._told.add(warning)
                self._log.event(CONFIG_WARNED, detail=warning)
