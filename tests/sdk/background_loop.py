"""An event loop in a thread of its own: blocking clients need servers that run beside them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

CALL_WITHIN_S = 15.0

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines in another thread; `with` starts and ends the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine there and give its result here."""
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(CALL_WITHIN_S)

    def call(self, work: Callable[[], T]) -> T:
        """Call something there, so that it sees nothing half-changed."""

        async def called() -> T:
            return work()

        return self.run(called())
