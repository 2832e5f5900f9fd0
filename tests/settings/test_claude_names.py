"""`routing.claude_names`: what serves clients that ask for a Claude model by its vendor's name."""

from typing import Any

import msgspec
import pytest

from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import build_catalog, load_bytes


def built(names: dict[str, Any], **more: Any) -> Catalog:
    document = {
        "providers": {"p": {"base_url": "https://p.example/v1"}},
        "keys": [{"id": "k", "provider": "p", "secret": "s"}],
        "models": [{"provider": "p", "model": "m"}, {"provider": "p", "model": "claude-opus-4"}],
        "combos": [{"id": "auto", "members": "all"}, {"id": "mine", "members": ["p/m"]}],
        "auth": {"mode": "none"},
        "routing": {"claude_names": names},
        **more,
    }
    loaded = load_bytes(msgspec.json.encode(document), {})
    return build_catalog(loaded.settings, 1)


def combo_of(catalog: Catalog, name: str) -> str | None:
    resolved = catalog.resolve(name)
    return None if resolved is None else resolved.combo


def test_word_in_a_name_leads_to_what_stands_for_it() -> None:
    catalog = built({"opus": "mine", "haiku": "auto:fast", "default": "p/m"})

    assert combo_of(catalog, "claude-3-opus-latest") == "mine"
    assert combo_of(catalog, "Claude-Haiku-4-5") == "auto:fast"
    assert combo_of(catalog, "claude-sonnet-4-5") == "p/m"
    assert combo_of(catalog, "opus") is None


def test_name_that_something_has_is_not_replaced() -> None:
    catalog = built({"default": "mine"})

    assert combo_of(catalog, "claude-opus-4") == "p/claude-opus-4"


def test_without_a_default_other_names_stay_unknown() -> None:
    catalog = built({"opus": "mine"})

    assert combo_of(catalog, "claude-sonnet-4-5") is None
    assert catalog.problem_of("claude-sonnet-4-5") is NameProblem.UNKNOWN


def test_unknown_names_of_others_go_to_the_default_combo_all_the_same() -> None:
    catalog = built({"opus": "mine"}, unknown_model="default")

    assert combo_of(catalog, "claude-sonnet-4-5") == "auto"
    assert combo_of(catalog, "claude-opus-5") == "mine"


def test_name_that_nothing_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigInvalidError) as caught:
        built({"opus": "mime"})

    assert caught.value.faults == (
        'routing.claude_names.opus: unknown "mime"; did you mean "mine"?',
    )
