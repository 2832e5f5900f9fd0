"""What modules have in common that call scripts with the time as their last argument."""

from collections.abc import Callable, Sequence

from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.scripts import Scripts


class ScriptCaller:
    """Calls scripts for whoever derives from it.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._keys = keys
        self._server_now_ms = server_now_ms

    async def _call(self, name: str, keys: Sequence[str], *args: str | int) -> list[Reply]:
        """Run the script `name`; see `RedisClient.run`."""
        return await self._client.run(self._scripts[name], keys, [*args, self._server_now_ms()])


class OwnedCaller(ScriptCaller):
    """The same in the name of one worker, for scripts that have to know who calls.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names the worker, as in its terms.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        worker_id: str,
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        super().__init__(client, scripts, keys, server_now_ms=server_now_ms)
        self._owner = encode_part(worker_id)
