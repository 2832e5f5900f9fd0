from typing import Any

import msgspec
import pytest

from cluster_gw.simulator.config import SimulatorConfig, key_label
from cluster_gw.simulator.ledger import Charge, Ledger, Rejection


def ledger(**limits: Any) -> Ledger:
    enforce = limits.pop("enforce", True)
    fields = {"keys": {"k": {"label": "a", **limits}}, "enforce": enforce}
    return Ledger(msgspec.convert(fields, SimulatorConfig))


def arrive(
    books: Ledger, now_s: float, request_id: str | None = None, model: str = "m"
) -> Charge | Rejection:
    account = books.account("k")
    assert account is not None
    return books.arrive(account, model=model, now_s=now_s, request_id=request_id)


def accepted(books: Ledger, now_s: float, request_id: str | None = None) -> Charge:
    charge = arrive(books, now_s, request_id)
    assert isinstance(charge, Charge)
    return charge


def book(books: Ledger, now_s: float = 0.0) -> dict[str, Any]:
    found: dict[str, Any] = books.stats(now_s)["keys"]["a"]
    return found


def test_request_above_the_minute_limit_is_rejected_and_counted_as_a_violation() -> None:
    books = ledger(rpm=2)
    accepted(books, 0.0)
    accepted(books, 30.0)

    verdict = arrive(books, 59.0)

    assert isinstance(verdict, Rejection)
    assert [(hit.name, hit.used, hit.retry_after_s) for hit in verdict.hits] == [("rpm", 2, 1.0)]
    assert book(books)["violations"]["rpm"] == 1
    assert (book(books)["accepted"], book(books)["rejected"]) == (2, 1)


def test_minute_limit_opens_when_the_oldest_request_leaves_the_window() -> None:
    books = ledger(rpm=2)
    accepted(books, 0.0)
    accepted(books, 30.0)

    accepted(books, 60.0)

    assert isinstance(arrive(books, 60.0), Rejection)
    assert book(books, 60.0)["peak_requests_60s"] == 2


def test_rejected_request_takes_no_place_in_the_window() -> None:
    books = ledger(rpm=1)
    accepted(books, 0.0)
    for now_s in (10.0, 20.0, 30.0):
        arrive(books, now_s)

    accepted(books, 60.0)


def test_counting_only_lets_the_request_in_and_still_counts_the_violation() -> None:
    books = ledger(rpm=1, enforce=False)
    accepted(books, 0.0)

    accepted(books, 1.0)

    assert book(books)["violations"]["rpm"] == 1
    assert book(books)["peak_requests_60s"] == 2


def test_tokens_used_in_the_last_minute_close_the_key() -> None:
    books = ledger(tpm=100)
    charge = accepted(books, 0.0)
    charge.bill(40, 0)
    charge.emit(59)
    accepted(books, 1.0)
    charge.emit(1)

    verdict = arrive(books, 2.0)

    assert isinstance(verdict, Rejection)
    assert verdict.hits[0].name == "tpm"
    assert verdict.hits[0].retry_after_s == 58.0
    accepted(books, 60.0)


@pytest.mark.parametrize("name", ["rpd", "tpd"])
def test_day_limit_holds_for_a_whole_day(name: str) -> None:
    books = ledger(**{name: 1})
    accepted(books, 0.0).bill(1, 0)

    assert isinstance(arrive(books, 86_399.0), Rejection)
    accepted(books, 86_400.0)


def test_concurrency_is_freed_when_a_request_ends() -> None:
    books = ledger(concurrency=1)
    charge = accepted(books, 0.0)
    assert isinstance(arrive(books, 1.0), Rejection)

    charge.close("completed", "completed")

    accepted(books, 2.0)
    assert book(books)["violations"]["concurrency"] == 1
    assert book(books)["max_in_flight"] == 1


def test_a_charge_ends_once() -> None:
    books = ledger()
    charge = accepted(books, 0.0, "x")

    charge.close("aborted", "aborted")
    charge.close("completed", "completed")

    assert (book(books)["aborted"], book(books)["completed"], book(books)["in_flight"]) == (1, 0, 0)
    assert books.stats(0.0)["requests"]["x"]["outcomes"] == ["aborted"]


def test_model_with_own_limits_is_judged_by_both_meters() -> None:
    books = ledger(rpm=2, models={"m": {"rpm": 1}})
    arrive(books, 0.0, model="m")

    assert isinstance(arrive(books, 1.0, model="m"), Rejection)
    assert isinstance(arrive(books, 1.0, model="other"), Charge)
    assert isinstance(arrive(books, 1.0, model="other"), Rejection)
    assert books.stats(1.0)["totals"]["violations"]["rpm"] == 2
    assert book(books)["models"]["m"]["violations"]["rpm"] == 1


def test_story_of_an_id_tells_every_call_and_its_tokens() -> None:
    books = ledger(rpm=1)
    charge = accepted(books, 0.0, "x")
    charge.bill(3, 4)
    charge.close("completed", "completed")
    arrive(books, 1.0, "x")

    assert books.story("x") == {
        "calls": 2,
        "images": 0,
        "keys": ["a", "a"],
        "models": ["m", "m"],
        "outcomes": ["completed", "rejected"],
        "tokens": 7,
    }


def test_only_the_newest_ids_are_remembered() -> None:
    books = Ledger(SimulatorConfig(any_key=True, remembered_ids=2))
    account = books.account("k")
    assert account is not None
    for name in "xyz":
        books.arrive(account, model="m", now_s=0.0, request_id=name)

    assert books.story("x") is None
    assert books.story("z") is not None


def test_reset_forgets_counts_and_windows_but_not_what_is_in_flight() -> None:
    books = ledger(rpm=1, concurrency=2)
    charge = accepted(books, 0.0, "x")

    books.reset()

    accepted(books, 1.0)
    assert book(books)["accepted"] == 1
    assert book(books)["in_flight"] == 2
    charge.close("completed", "completed")
    assert book(books)["in_flight"] == 1
    assert books.stats(0.0)["requests"] == {}


def test_unknown_key_has_no_account() -> None:
    assert ledger().account("other") is None
    assert ledger().account("") is None


def test_any_key_admits_none_as_well() -> None:
    books = Ledger(SimulatorConfig(any_key=True))

    assert books.account("") is books.account("")
    assert list(books.stats(0.0)["keys"]) == ["no-key"]


def test_statistics_never_show_a_secret() -> None:
    config = SimulatorConfig(any_key=True)
    books = Ledger(config)
    books.account("sk-very-secret")

    assert b"very-secret" not in msgspec.json.encode(books.stats(0.0))
    assert list(books.stats(0.0)["keys"]) == [key_label(config, "sk-very-secret")]


def test_two_keys_cannot_share_a_label() -> None:
    with pytest.raises(msgspec.ValidationError, match="share a label"):
        msgspec.convert({"keys": {"x": {"label": "a"}, "y": {"label": "a"}}}, SimulatorConfig)


def test_unknown_setting_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="prm"):
        msgspec.convert({"keys": {"x": {"prm": 1}}}, SimulatorConfig)
