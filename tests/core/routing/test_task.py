"""What looks like a task about code."""

from typing import Any

import pytest

from cluster_gw.core.routing.catalog import Resolved
from cluster_gw.core.routing.context import build_context
from cluster_gw.core.routing.presets import Task
from cluster_gw.core.routing.task import LOOK_CHARACTERS, looks_like_code
from cluster_gw.units import ClientId
from tests.pipeline.catalogs import make_catalog, make_request, make_route


@pytest.mark.parametrize(
    "text",
    [
        "Why does this fail?\n```\nfoo()\n```",
        "def area(r):\n    return r * r",
        "please fix\n  class Order(Base):",
        "int total = 0;",
        "for (i = 0; i < 3; i++) {",
        "what is wrong in main.py?",
        "Traceback (most recent call last):\n  ...",
        "x " * LOOK_CHARACTERS + "```",
    ],
)
def test_code_is_seen(text: str) -> None:
    assert looks_like_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Write a poem about the sea (a short one).",
        "for example, tell me:\n- one\n- two",
        "from Monday on I work. class starts at 9",
        "Mr. Jones and Mrs. Smith; both came",
    ],
)
def test_prose_is_not_taken_for_code(text: str) -> None:
    assert not looks_like_code(text)


def task(named: Task = Task.AUTO, **facts: Any) -> Task:
    resolved = make_catalog(make_route("m")).resolve("auto")
    assert isinstance(resolved, Resolved)
    return build_context(make_request(**facts), resolved, ClientId("c"), task=named).task


def test_tools_and_code_in_the_last_user_message_make_a_task_of_code() -> None:
    assert task(wants_tools=True) is Task.CODE
    assert task(last_user_text="see a.py") is Task.CODE
    assert task(last_user_text="see the sea") is Task.AUTO


def test_what_the_client_names_wins() -> None:
    assert task(Task.CHAT, wants_tools=True) is Task.CHAT
    assert task(Task.CODE) is Task.CODE
