"""`cluster-gw redis …`: one raw command to the configured Redis, the embedded one included."""

import os
import sys
from typing import Any, Final

import click
import msgspec

from cluster_gw.cli.options import config_option, data_dir_of, json_option
from cluster_gw.settings import config_path, load_redis
from cluster_gw.settings.sections import RedisSettings
from cluster_gw.supervisor.embedded import running_socket
from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.supervisor.redis_door import RedisDoor
from cluster_gw.supervisor.resp import ErrorReply, Reply, RespError

TIMEOUT_S: Final = 10.0
EMBEDDED: Final = "embedded:"


@click.command(
    "redis",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Send one command to the configured Redis.",
)
@config_option
@click.option("--url", help="Another Redis than the configured one.")
@json_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def command(config: str | None, url: str | None, words: tuple[str, ...], *, as_json: bool) -> int:
    """Send one command, such as `HGETALL key`, and print its reply like redis-cli does."""
    try:
        connection = RedisDoor(url or _configured(config), TIMEOUT_S)
        try:
            reply = connection.call([os.fsencode(word) for word in words])
        finally:
            connection.close()
    except RespError as error:
        raise StartError(f"redis: {error}", ExitCode.DEPENDENCY_UNREACHABLE) from None
    if as_json:
        text = msgspec.json.encode(plain(reply))
    else:
        text = "\n".join(lines(reply) if sys.stdout.isatty() else raw_lines(reply)).encode(
            "utf-8", "surrogateescape"
        )
    click.echo(text)
    return ExitCode.FAILED if isinstance(reply, ErrorReply) else ExitCode.OK


def _configured(config: str | None) -> str:
    return redis_url(load_redis(config_path(config, os.environ), os.environ))


def redis_url(settings: RedisSettings) -> str:
    """Where Redis is: as configured, or the embedded one that runs on the configured data.

    Raises:
        StartError: none runs there.
    """
    url = settings.url.reveal()
    if url != EMBEDDED:
        return url
    data_dir = data_dir_of(settings.data_dir)
    path = running_socket(data_dir)
    if path is None:
        raise StartError(f"no embedded Redis runs on {data_dir}", ExitCode.DEPENDENCY_UNREACHABLE)
    return f"unix://{path}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def plain(reply: Reply) -> Any:
    """Give a reply as JSON knows it; bytes that are no text are replaced."""
    match reply:
        case bytes():
            return reply.decode("utf-8", "replace")
        case ErrorReply():
            return {"error": reply.text}
        case None | int():
            return reply
        case _:
            return [plain(item) for item in reply]


def raw_lines(reply: Reply) -> list[str]:
    """Give a reply as redis-cli prints it into a pipe: values alone, one per line."""
    match reply:
        case None:
            return [""]
        case int():
            return [str(reply)]
        case bytes():
            return [_text(reply)]
        case ErrorReply():
            return [reply.text]
        case _:
            return [line for item in reply for line in raw_lines(item)] or [""]


def lines(reply: Reply) -> list[str]:
    """Give a reply as redis-cli shows it to a person."""
    match reply:
        case None:
            return ["(nil)"]
        case int():
            return [f"(integer) {reply}"]
        case bytes():
            return [f'"{_quoted(reply)}"']
        case ErrorReply():
            return [f"(error) {reply.text}"]
        case _:
            return _numbered(reply) or ["(empty array)"]


def _numbered(items: Any) -> list[str]:
    width = len(str(len(items)))
    shown: list[str] = []
    for number, item in enumerate(items, 1):
        first, *rest = lines(item)
        shown.append(f"{number:>{width}}) {first}")
        shown.extend(f"{'':>{width}}  {line}" for line in rest)
    return shown


def _quoted(data: bytes) -> str:
    names = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    return "".join(
        names.get(byte) or (chr(byte) if byte in range(0x20, 0x7F) else f"\\x{byte:02x}")
        for byte in data
    )
