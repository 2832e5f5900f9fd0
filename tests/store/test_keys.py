import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.store.key_shapes import KEY_SHAPES
from cluster_gw.store.keys import Keys, encode_part

KEYS = Keys("gw1")
TEXT = st.text(max_size=12) | st.text(alphabet="._:{}%/~-a_A", max_size=6)


@given(one=TEXT, other=TEXT)
def test_different_texts_never_encode_alike(one: str, other: str) -> None:
    assert (encode_part(one) == encode_part(other)) == (one == other)


@given(text=TEXT)
def test_encoded_text_cannot_break_out_of_a_name_or_a_lease_record(text: str) -> None:
    encoded = encode_part(text)

    assert re.fullmatch(r"[A-Za-z0-9._~%-][A-Za-z0-9._~%-]*|", encoded.replace("_", "-"))
    assert not encoded.startswith("_")


@given(one=st.tuples(TEXT, TEXT, TEXT, TEXT), other=st.tuples(TEXT, TEXT, TEXT, TEXT))
def test_different_targets_never_share_a_window(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    names = [
        KEYS.model_window(KEYS.slot(provider, account), key, model)
        for provider, account, key, model in (one, other)
    ]

    assert (names[0] == names[1]) == (one == other)


@given(provider=TEXT, account=TEXT, key=TEXT, model=TEXT)
def test_all_keys_of_an_account_live_in_one_slot(
    provider: str, account: str, key: str, model: str
) -> None:
    slot = KEYS.slot(provider, account)
    windows = (
        KEYS.model_window(slot, key, model),
        KEYS.key_window(slot, key),
        KEYS.account_window(slot),
    )
    names = [KEYS.lease_expiries(slot), *windows]

    assert len(set(names)) == len(names)
    assert len({key_slot(name.encode()) for name in names}) == 1


@given(key=TEXT, model=TEXT)
def test_no_model_can_pose_as_the_window_of_its_key(key: str, model: str) -> None:
    assert KEYS.model_window("{s}", key, model) != KEYS.key_window("{s}", key)
    assert KEYS.model_window("{s}", key, model) != KEYS.account_window("{s}")


@given(one=st.tuples(TEXT, TEXT), other=st.tuples(TEXT, TEXT))
def test_cursors_are_one_for_each_combo_and_epoch(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert (KEYS.cursor(*one) == KEYS.cursor(*other)) == (one == other)


@given(one=TEXT.filter(bool), other=TEXT.filter(bool))
def test_keys_of_a_client_are_its_own_and_live_in_one_slot(one: str, other: str) -> None:
    mine, theirs = KEYS.client(one), KEYS.client(other)

    assert (set(mine) & set(theirs) == set()) == (one != other)
    assert len({key_slot(name.encode()) for name in mine}) == 1


@given(digest=TEXT.filter(bool), token=st.integers(0, 2**53))
def test_an_answer_its_lead_and_its_feed_live_in_one_slot(digest: str, token: int) -> None:
    names = (KEYS.cached(digest), KEYS.cache_lead(digest), KEYS.cache_feed(digest, token))

    assert len({key_slot(name.encode()) for name in names}) == 1
    assert KEYS.of_member(KEYS.cached_member(digest)) == KEYS.cached(digest)


@given(provider=TEXT.filter(bool), account=TEXT.filter(bool), key=TEXT.filter(bool))
def test_whose_use_it_is_can_be_read_in_its_name(provider: str, account: str, key: str) -> None:
    slot = KEYS.slot(provider, account)
    name = KEYS.usage_of_key(slot, key)

    assert KEYS.is_used_key(name)
    assert KEYS.used_key(name) == (provider, key)
    assert key_slot(KEYS.usage(name, 1).encode()) == key_slot(KEYS.lease_expiries(slot).encode())


def test_names_can_be_read_and_typed() -> None:
    slot = KEYS.slot("groq", "team-a")

    window = KEYS.model_window(slot, "groq-a", "meta-llama/llama-4:free")
    assert window == "gw1:w:{groq.team-a}:groq-a:meta-llama%2Fllama-4%3Afree"
    assert KEYS.key_window(slot, "groq-a") == "gw1:w:{groq.team-a}:groq-a:_all"
    assert KEYS.model_window(slot, "k", "llama-3.3").endswith(":llama-3.3")
    assert KEYS.model_window(slot, "k", "_all").endswith(":%5Fall")


def test_every_kind_of_name_is_in_the_table_of_keys() -> None:
    slot = KEYS.slot("p", "a")
    names = [
        *(KEYS.lease_expiries(slot), KEYS.cursor("c", "1"), KEYS.meta(), KEYS.overlay()),
        *(KEYS.lead("reaper"), KEYS.workers(), KEYS.model_window(slot, "k", "m")),
        *(KEYS.key_window(slot, "k"), KEYS.account_window(slot)),
        *(KEYS.model("p", "m"), KEYS.bookings("p"), KEYS.statistics(slot, "k", "m")),
        *(KEYS.check(slot, "k"), KEYS.probe(), KEYS.outage("p")),
        *(
            KEYS.snapshot(),
            KEYS.key_statuses(),
            KEYS.model_statuses(),
            KEYS.tool_marks(),
            KEYS.pool_status(),
        ),
        *(KEYS.key_caps(slot, "k"), KEYS.strangers(), KEYS.learned("app", "p/m")),
        *(KEYS.pin("c", "1", "run", "0123"), KEYS.last_good("c", "1"), KEYS.answer("0123")),
        *(KEYS.thoughts("app", "0123", "4567"), KEYS.handoff("app", "0123")),
        *(KEYS.cached("0123"), KEYS.cache_lead("0123"), KEYS.cache_feed("0123", 1)),
        *KEYS.cache_index(),
        *KEYS.client("app"),
        *KEYS.requests("a", "plain"),
        *KEYS.repeats("app", "0123"),
        *KEYS.health(slot, "k", "m"),
        *(KEYS.usage(KEYS.usage_of_key(slot, "k"), 20261201), KEYS.usage_index()),
        *(KEYS.usage_saved(20261201), KEYS.usage_told("w1"), KEYS.doctor()),
    ]
    kinds = {name.removeprefix("gw1:").split(":")[0] for name in names}

    assert kinds == {shape.pattern.split(":")[0] for shape in KEY_SHAPES}


@pytest.mark.parametrize("prefix", ["", "gw:1", "GW", "{gw}", "g w", "_gw", "a" * 17])
def test_prefix_that_would_break_names_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigInvalidError, match=r"redis\.prefix"):
        Keys(prefix)
