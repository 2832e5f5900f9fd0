"""What libraries log becomes events: which one, where in its code, which exception; never its text.

asyncio tells of a task that nobody waited for with the text of its exception, uvicorn of requests
that are none, aiohttp of connections with their addresses. Python writes such records to standard
error as they are: no JSON, without a limit, with whatever they hold.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import PurePath
from types import TracebackType

from cluster_gw.telemetry.events import LIBRARY_WARNED
from cluster_gw.telemetry.log import Log


class LibraryLog(logging.Handler):
    """Writes warnings and errors of libraries as events of a log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record without its text."""
        exception, where = "", f"{PurePath(record.pathname).name}:{record.lineno}"
        if record.exc_info and record.exc_info[0] is not None:
            exception = record.exc_info[0].__name__
            where = _raised_at(record.exc_info[2]) or where
        is_ours = threading.current_thread() is threading.main_thread()
        tell = self._log.event if is_ours else self._log.event_later
        tell(LIBRARY_WARNED, library=record.name, where=where, exception=exception)


@contextlib.contextmanager
def libraries_told(log: Log) -> Iterator[None]:
    """Have a log told what libraries log, as long as this process serves."""
    handler, root = LibraryLog(log), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _raised_at(trace: TracebackType | None) -> str:
    """The place in the code where an exception began; no value is read."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
