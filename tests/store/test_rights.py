"""The documented rights are those the scripts need, and they suffice."""

import ast
import re

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.rights import CALL, CLUSTER, DIRECT, user_rule
from cluster_gw.store.scripts import expand, find_folder, script_files
from tests.architecture.source_tree import ROOT, parse, python_files
from tests.fakes.redis_sentinel import SENTINEL_RULE
from tests.fakes.redis_server import RedisServer

PAGE = (ROOT / "docs/redis-acl.md").read_text(encoding="utf-8")


def test_the_page_gives_the_rights_that_the_scripts_need() -> None:
    assert f"\n{' '.join(user_rule(find_folder()))}\n" in PAGE, "run make manifest"
    assert f"\nACL SETUSER gateway {' '.join(f'+{name}' for name in CLUSTER)}\n" in PAGE
    assert f"\n{' '.join(SENTINEL_RULE)}\n" in PAGE


def test_every_call_of_a_script_spells_its_command_out() -> None:
    folder = find_folder()
    texts = [expand(path, folder) for path in script_files(folder)]
    code = "\n".join(re.sub(r"--.*", "", text) for text in texts)

    assert len(re.findall(r"\bp?call\(", code)) == len(CALL.findall(code)) > 0


def test_only_telling_others_may_fail_unnoticed() -> None:
    folder = find_folder()
    texts = [expand(path, folder) for path in script_files(folder)]
    code = "\n".join(re.sub(r"--.*", "", text) for text in texts)

    assert set(re.findall(r"pcall\(\s*(\S+)", code)) == {"'PUBLISH',"}


def test_commands_sent_without_a_script_are_among_the_rights() -> None:
    sent = {
        str(call.args[0].value).lower()
        for path in python_files("cluster_gw/store", "cluster_gw/background", "cluster_gw/app")
        for call in ast.walk(parse(path))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"call", "submit"}
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }

    assert sent - {name.partition("|")[0] for name in DIRECT} == set()


async def test_a_user_with_these_rights_can_do_everything_and_no_more(
    own_server: RedisServer,
) -> None:
    rule = user_rule(find_folder(), prefix="other")
    assert own_server.command(*rule).startswith(b"+OK")
    client = RedisClient(f"unix://gateway:password@{own_server.path}?db=2", prefix="other")
    await client.start(5.0)

    assert await client.call("PING") == b"PONG"
    for forbidden in (("FLUSHALL",), ("CONFIG", "GET", "*"), ("HGET", "gw1:x", "y"), ("KEYS", "*")):
        with pytest.raises(StoreLostError, match="NOPERM"):
            await client.call(*forbidden)
    await client.close()
