"""Where the cache lies, and in whose name this worker writes there."""

from collections.abc import Callable

import msgspec

from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.sealing import Seal


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts of the cache of a worker work with.

    Attributes:
        client: of the cache's Redis.
        scripts: the loaded scripts.
        keys: builds key names.
        seal: encrypts what is written.
        worker_id: names this worker.
        now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    client: RedisClient
    scripts: Scripts
    keys: Keys
    seal: Seal
    worker_id: str
    now_ms: Callable[[], int] = server_clock

    @property
    def owner(self) -> str:
        """The worker's name as one word."""
        return encode_part(self.worker_id)

    async def run(self, name: str, keys: list[str], *args: str | int | bytes) -> list[Reply]:
        """Run a script with the time as its last argument; see `RedisClient.run`."""
        return await self.client.run(self.scripts[name], keys, [*args, self.now_ms()])

    async def give_up(self, digest: str, token: int, why: str) -> None:
        """Free a lead of this worker; see `RedisClient.run`.

        Args:
            digest: of the request.
            token: of the lead.
            why: one word that followers are told.
        """
        script, key = self.scripts["cache/give_up"], self.keys.cache_lead(digest)
        await self.client.run(script, [key], [self.owner, token, why])
