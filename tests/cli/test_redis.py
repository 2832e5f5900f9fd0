"""`redis` sends one raw command and prints like redis-cli."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.cli.redis import lines, plain, raw_lines
from cluster_gw.supervisor.child import Child
from cluster_gw.supervisor.embedded import EmbeddedServer, find_binary
from cluster_gw.supervisor.resp import ErrorReply, Reply
from tests.cli.running import Told, run_command
from tests.fakes.redis_server import RedisServer
from tests.supervisor.conftest import wait_for


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(str(find_binary())) as running:
        yield running


def redis(*arguments: str) -> Told:
    return run_command("redis", *arguments)


def test_replies_are_printed_plainly_into_a_pipe(server: RedisServer) -> None:
    assert redis("--url", server.url, "SET", "k", "v w") == (0, "OK\n", "")
    assert redis("--url", server.url, "GET", "k") == (0, "v w\n", "")
    assert redis("--url", server.url, "GET", "none") == (0, "\n", "")
    assert redis("--url", server.url, "HSET", "h", "a", "1", "b", "2") == (0, "2\n", "")
    assert redis("--url", server.url, "HGETALL", "h") == (0, "a\n1\nb\n2\n", "")
    assert redis("--url", server.url, "EVAL", "return -5", "0") == (0, "-5\n", "")


def test_json_is_printed_on_request(server: RedisServer) -> None:
    assert redis("--url", server.url, "--json", "HMGET", "none", "a") == (0, "[null]\n", "")


def test_an_error_reply_is_exit_1(server: RedisServer) -> None:
    code, out, _ = redis("--url", server.url, "NONSENSE")

    assert code == 1
    assert out.startswith("ERR unknown command")


def test_options_after_the_command_belong_to_it(server: RedisServer) -> None:
    assert redis("--url", server.url, "ECHO", "--json") == (0, "--json\n", "")


def test_nobody_answering_is_exit_3(tmp_path: Path) -> None:
    code, _, err = redis("--url", f"unix://{tmp_path}/none", "PING")

    assert code == 3
    assert "error: redis: cannot connect" in err


def test_the_configured_redis_is_used_without_any_key_in_the_environment(
    server: RedisServer, tmp_path: Path
) -> None:
    config = tmp_path / "gw.yaml"
    config.write_text(
        f"redis: {{url: '{server.url}'}}\nkeys: [{{id: a, provider: b, secret: 'env:UNSET_KEY'}}]\n"
    )

    assert redis("--config", str(config), "PING") == (0, "PONG\n", "")


async def test_the_embedded_redis_is_found_by_its_data(short_folder: Path) -> None:
    config = short_folder / "gw.yaml"
    config.write_text(f"redis: {{data_dir: '{short_folder}/data'}}")
    assert redis("--config", str(config), "PING")[0] == 3
    embedded = EmbeddedServer(short_folder / "data", str(short_folder / "s"), find_binary())
    await embedded.lock()
    child = Child("embedded", lambda _: embedded.spawn())
    child.start(0.0)
    await embedded.wait_until_ready(child)

    try:
        assert redis("--config", str(config), "PING") == (0, "PONG\n", "")
        assert redis("--config", str(config), "SHUTDOWN", "NOSAVE")[0] == 3
    finally:
        wait_for(child.has_ended)
        embedded.release()


def test_a_missing_command_is_exit_2() -> None:
    assert redis()[0] == 2


NESTED: Reply = [b"a", [1, None, []], ErrorReply("ERR x")]


def test_a_person_sees_types_and_numbers() -> None:
    assert lines(NESTED) == [
        '1) "a"',
        "2) 1) (integer) 1",
        "   2) (nil)",
        "   3) (empty array)",
        "3) (error) ERR x",
    ]
    assert lines(b'\x00"\\\n\xff') == ['"\\x00\\"\\\\\\n\\xff"']


def test_pipes_and_json_get_values() -> None:
    assert raw_lines(NESTED) == ["a", "1", "", "", "ERR x"]
    assert plain(NESTED) == ["a", [1, None, []], {"error": "ERR x"}]
