"""`/api/keys`: the credentials of providers, never shown, with their flags, models and limits."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.key_secrets import KeySecrets
from cluster_gw.server.admin.read_only import ReadOnly
from cluster_gw.server.admin.writing import read_fields
from cluster_gw.units import DAY_S, MS_PER_S

FOR_S, BENCHED_S = "for_s", 600
READ_ONLY: Final = ReadOnly(
    fixed=frozenset({"id", "provider", "account", "base_url"}),
    moving=frozenset({"secret_source", "secret_set_at_ms", "secret_problem"}),
)


def key_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/keys`."""
    keys = Keys(desk, "keys", show_key, READ_ONLY)
    secrets = KeySecrets(keys)
    return [
        Route("/api/keys", keys.show_all, methods=["GET"]),
        *keys.routes("/api/keys/{id}"),
        Route("/api/keys/{id}/cooldowns", keys.forget, methods=["DELETE"]),
        Route("/api/keys/{id}/bench", keys.bench, methods=["POST"]),
        Route("/api/keys/{id}/secret", secrets.replace, methods=["PUT"]),
        Route("/api/keys/{id}/secret", secrets.revert, methods=["DELETE"]),
        Route("/api/key-secrets/reseal", secrets.reseal, methods=["POST"]),
    ]


class Keys(Items):
    """Shows and changes keys."""

    async def bench(self, request: Request) -> Response:
        """Have one key rest on all its models, on all workers at once: for `for_s`, ten minutes."""
        name: str = self.find(request.path_params["id"])["id"]
        for_s = read_time(await read_fields(request))
        until_ms = await self.desk.penalties.bench_key(name, round(for_s * MS_PER_S))
        if not until_ms:
            raise ClientFault(invalid("no model is served with this key", "id"))
        return told({"id": name, "rests_until_ms": until_ms}, self.desk.config_version)

    async def forget(self, request: Request) -> Response:
        """Forget cooldowns, their ladders and breakers of one key, on all workers at once."""
        name: str = self.find(request.path_params["id"])["id"]
        cleared = await self.desk.penalties.clear_key(name)
        return told({"id": name, "cleared": cleared}, self.desk.config_version)


def read_time(body: Mapping[str, Any]) -> float:
    """Read for how long a key rests, in s.

    Raises:
        ClientFault: it is no number within bounds, or something else is asked.
    """
    for name in body:
        if name != FOR_S:
            raise ClientFault(invalid(f"unknown field '{name[:80]}'", name[:80]))
    for_s = body.get(FOR_S, BENCHED_S)
    is_number = isinstance(for_s, int | float) and not isinstance(for_s, bool)
    if not is_number or not 1 <= for_s <= DAY_S:
        raise ClientFault(invalid(f"for_s has to be a number from 1 to {DAY_S}", FOR_S))
    return float(for_s)


def show_key(desk: Desk, key: Item) -> dict[str, Any]:
    """Give a key; its account is its own unless it shares one. Of its secret, where it is from."""
    secret = desk.editor.key_secret(key["id"])
    return {
        **key,
        "account": key["account"] or key["id"],
        "secret_source": secret.source,
        "secret_set_at_ms": secret.set_at_ms,
        "secret_problem": secret.problem,
    }
