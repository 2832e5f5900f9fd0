from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.simulator.directive import Directive, DirectiveFault, FaultRule, parse_directive
from cluster_gw.simulator.fault_book import FaultBook
from cluster_gw.simulator.faults import (
    Cut,
    Encoded,
    Fault,
    NoDone,
    SlowDrip,
    Status,
    fault_from_model,
    fault_kind,
)

json_texts = st.text(alphabet='ab]["{}\\é ', max_size=20)


@given(text=json_texts, before=st.text("ab [", max_size=5), after=json_texts)
def test_directive_is_found_whatever_its_strings_hold(text: str, before: str, after: str) -> None:
    document = msgspec.json.encode({"text": text, "texts": [text]}).decode()

    found = parse_directive(f"{before}[[sim {document} ]]{after}")

    assert found == Directive(text=text, texts=(text,))


def test_text_without_a_directive_asks_for_nothing() -> None:
    assert parse_directive("a [[simple]] text") == Directive()


@pytest.mark.parametrize(
    "text",
    ['[[sim {"text": "x"}', "[[sim nonsense]]", '[[sim {"txt": "x"}]]', '[[sim {"n": 0}]]'],
)
def test_a_mistake_in_a_directive_is_told(text: str) -> None:
    assert isinstance(parse_directive(text), DirectiveFault)


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("fault-status-503", Status(code=503)),
        ("fault-status-429-7", Status(code=429, retry_after=7)),
        ("fault-cut-120", Cut(at_byte=120)),
        ("fault-cut-fin-120", Cut(at_byte=120, mode="fin")),
        ("fault-slow-drip-5-20", SlowDrip(bytes_per_chunk=5, delay_ms=20)),
        ("fault-zstd", Encoded(encoding="zstd")),
        ("fault-no-done", NoDone()),
        ("fault-no-done-1", None),
        ("fault-status", None),
        ("fault-unheard-of", None),
        ("sim-small", None),
    ],
)
def test_model_name_spells_a_fault(model: str, fault: Fault | None) -> None:
    assert fault_from_model(model) == fault


def rules(*documents: dict[str, Any]) -> list[FaultRule]:
    return msgspec.convert(list(documents), list[FaultRule])


def taken(
    book: FaultBook, directive: Directive | None = None, *, key: str = "a", model: str = "m"
) -> list[str]:
    faults = book.take(directive or Directive(), request_key="r", key=key, model=model)
    return [fault_kind(fault) for fault in faults]


def test_script_is_used_up_in_order() -> None:
    book = FaultBook("sim", 100)
    book.add(rules({"fault": {"kind": "no_done"}, "times": 2}, {"fault": {"kind": "role_only"}}))

    assert [taken(book) for _ in range(4)] == [["no_done"], ["no_done"], ["role_only"], []]
    assert book.stats() == {"pending": 0, "applied": {"no_done": 2, "role_only": 1}}


def test_rule_without_times_stays() -> None:
    book = FaultBook("sim", 100)
    book.add(rules({"fault": {"kind": "no_done"}, "times": None}))

    assert [taken(book) for _ in range(3)] == [["no_done"]] * 3
    assert book.pending()[0]["used"] == 3


@pytest.mark.parametrize("match", [{"key": "b"}, {"model": "n"}])
def test_rule_waits_for_the_request_it_is_for(match: dict[str, str]) -> None:
    book = FaultBook("sim", 100)
    book.add(rules({"fault": {"kind": "no_done"}, "match": match}))

    assert taken(book) == []
    assert taken(book, key="b", model="n") == ["no_done"]


def test_rule_for_another_provider_is_not_ours() -> None:
    here, there = FaultBook("here", 100), FaultBook("there", 100)
    for book in (here, there):
        book.add(rules({"fault": {"kind": "no_done"}, "match": {"provider": "there"}}))

    assert taken(here) == []
    assert taken(there) == ["no_done"]


def test_several_faults_of_a_rule_come_together() -> None:
    book = FaultBook("sim", 100)
    book.add(rules({"fault": [{"kind": "encoded"}, {"kind": "cut", "at_byte": 9}]}))

    assert taken(book) == ["encoded", "cut"]


def test_directive_comes_before_script_and_model() -> None:
    book = FaultBook("sim", 100)
    book.add(rules({"fault": {"kind": "role_only"}}))
    directive = Directive(fault=NoDone(), times=1)

    assert taken(book, directive, model="fault-gzip") == ["no_done"]
    assert taken(book, directive, model="fault-gzip") == ["role_only"]
    assert taken(book, directive, model="fault-gzip") == ["encoded"]


def test_directive_rules_can_name_the_key_they_fail_at() -> None:
    book = FaultBook("sim", 100)
    directive = Directive(
        rules=tuple(rules({"fault": {"kind": "no_done"}, "match": {"key": "a"}, "times": None}))
    )

    assert taken(book, directive, key="b") == []
    assert taken(book, directive, key="a") == ["no_done"]


def test_unknown_fault_kind_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        rules({"fault": {"kind": "explode"}})


def test_listing_has_faults_of_its_own() -> None:
    book = FaultBook("sim", 10)
    rules = [
        {"fault": {"kind": "status", "code": 401}, "match": {"call": "models", "key": "k"}},
        {"fault": {"kind": "status", "code": 503}},
    ]
    book.add(msgspec.convert(rules, list[FaultRule]))

    assert book.take_for_listing(key="other") == ()
    assert book.take_for_listing(key="k") == (Status(code=401),)
    assert book.take_for_listing(key="k") == ()
    assert book.take(Directive(), request_key="r", key="k", model="m") == (Status(code=503),)
