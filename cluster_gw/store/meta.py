"""Whether this process may share this Redis (`lua/meta/open`)."""

from cluster_gw.errors import ScriptContractError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import MIN_READER, SCHEMA, Scripts


async def open_schema(
    client: RedisClient,
    scripts: Scripts,
    keys: Keys,
    *,
    schema: int = SCHEMA,
    min_reader: int = MIN_READER,
) -> None:
    """Register the schema this worker writes.

    Raises:
        ScriptContractError: a newer worker wrote what this one would misread; do not start.
        StoreLostError: Redis is away.
    """
    status, _, stored, stored_min = await client.run(
        scripts["meta/open"], [keys.meta()], [schema, min_reader]
    )
    if status == 0:
        raise _refused(stored, stored_min, schema)


async def check_schema(client: RedisClient, keys: Keys, *, schema: int = SCHEMA) -> None:
    """Look whether this process understands what stands there; registers nothing.

    Raises:
        ScriptContractError: a newer worker wrote what this process would misread.
        StoreLostError: Redis is away.
    """
    stored, stored_min = [
        int(await client.call("HGET", keys.meta(), name) or 0) for name in ("schema", "min_reader")
    ]
    if stored_min > schema:
        raise _refused(stored, stored_min, schema)


def _refused(stored: int, stored_min: int, schema: int) -> ScriptContractError:
    return ScriptContractError(
        f"redis holds schema {stored}, readable from {stored_min}; this version knows {schema}"
    )
