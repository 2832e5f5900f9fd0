"""Calls of the admin API from the command line: answered in this process, from Redis."""

import asyncio
import getpass
import os
import socket
from collections.abc import Mapping
from typing import Any, Final

import click
import httpx
import msgspec

from cluster_gw.app.visiting import visit_admin
from cluster_gw.cli.process import say
from cluster_gw.cli.redis import redis_url
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.server.introduction import ACTOR_HEADER, PEER_HEADER
from cluster_gw.settings import Loaded, config_path, load
from cluster_gw.supervisor.failure import ExitCode, StartError

ACTOR: Final = "cli"
BAD, BROKEN = 400, 500
UNREACHABLE: Final = frozenset({503, 504})


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the admin API.

    Attributes:
        path: with a query, if any.
        query: names and values; those that are None are left out.
        body: as JSON; None for none.
        version: which the configuration has to have; None for any.
    """

    method: str = "GET"
    path: str
    query: Mapping[str, str | None] = {}
    body: Any = None
    version: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the API answered."""

    status: int
    content: bytes

    def document(self) -> Any:
        """It, read."""
        return msgspec.json.decode(self.content)

    @property
    def exit_code(self) -> ExitCode:
        """How the command ends."""
        if self.status < BAD:
            return ExitCode.OK
        if self.status in UNREACHABLE:
            return ExitCode.DEPENDENCY_UNREACHABLE
        return ExitCode.FAILED if self.status >= BROKEN else ExitCode.BAD_CONFIGURATION


def ask(config: str | None, call: Call) -> Answer:
    """Make one call.

    Args:
        config: which file, as the option says.
        call: what is asked.

    Raises:
        StartError: Redis is away, or not as this version writes it.
        ConfigInvalidError: the file cannot be used.
    """
    loaded = load(config_path(config, os.environ), os.environ)
    try:
        return asyncio.run(_ask(loaded, call))
    except StoreLostError as fault:
        raise StartError(f"redis: {fault}", ExitCode.DEPENDENCY_UNREACHABLE) from None
    except ScriptContractError as fault:
        raise StartError(str(fault)) from None


async def _ask(loaded: Loaded, call: Call) -> Answer:
    headers = {ACTOR_HEADER: ACTOR, PEER_HEADER: whoami()}
    if call.version is not None:
        headers["if-match"] = str(call.version)
    query = {name: value for name, value in call.query.items() if value is not None}
    async with visit_admin(loaded, os.environ, redis_url(loaded.settings.redis)) as admin:
        transport = httpx.ASGITransport(admin, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://cli") as client:
            answer = await client.request(
                call.method, call.path, params=query or None, json=call.body, headers=headers
            )
    return Answer(status=answer.status_code, content=answer.content)


def whoami() -> str:
    """Who calls, as the machine knows it: its user, and its name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without an entry
        user = str(os.getuid())
    words = f"{user}@{socket.gethostname()}"
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in words)


def refuse(answer: Answer) -> ExitCode:
    """Print the error of an answer for people; how the command ends."""
    try:
        error = answer.document()["error"]
        text = f"error: {error['code']}: {error['message']}"
    except (msgspec.MsgspecError, KeyError, TypeError):
        text = f"error: the admin API answered {answer.status}"
    say(text, err=True)
    return answer.exit_code


def print_bytes(answer: Answer) -> ExitCode:
    """Print an answer as the API gave it, errors too; how the command ends."""
    click.echo(answer.content)
    return answer.exit_code
