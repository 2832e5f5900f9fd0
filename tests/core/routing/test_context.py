from typing import Any

from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.units import ClientId
from tests.pipeline.catalogs import make_catalog, make_request, make_route

RESOLVED = make_catalog(make_route("m")).resolve("auto")


def context(client: str = "a", text: str = "hello", **labels: Any) -> RouteContext:
    assert RESOLVED is not None
    request = make_request(first_user_text=text)
    return build_context(request, RESOLVED, ClientId(client), **labels)


def test_keys_are_scoped_by_client_and_hold_no_prompt_text() -> None:
    own, other = context("a"), context("b")

    assert own.affinity_key != other.affinity_key
    assert "hello" not in own.affinity_key


def test_client_and_text_cannot_be_shifted_into_each_other() -> None:
    assert context("a", "bc").affinity_key != context("ab", "c").affinity_key


def test_a_label_replaces_the_affinity_key_and_run_and_session_differ() -> None:
    named = context(run_label="r", session_label="r")

    assert len({named.run_key, named.session_key, named.affinity_key}) == 3


def test_an_absent_or_overlong_label_falls_back_to_the_affinity_key() -> None:
    plain, long = context(), context(run_label="x" * 256)

    assert plain.run_key == plain.affinity_key
    assert long.run_key == long.affinity_key


def test_text_with_a_lone_surrogate_still_has_a_key() -> None:
    assert len(context(text="\ud800").affinity_key) == 32
