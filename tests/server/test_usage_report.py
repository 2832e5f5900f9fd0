"""Questions about usage are checked, and answers read by a real CSV reader say the same as JSON."""

import csv
import io
from datetime import date
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.usage import NUMBERS, Counts, Dimension, Place, Sums
from cluster_gw.errors import ClientFault
from cluster_gw.server.usage_report import (
    MOST_IN_CSV,
    Question,
    check_size,
    document,
    plain,
    read_question,
    table,
)

TODAY: Final = date(2026, 12, 1)
NASTY: Final = (
    *('p/a,b "c"\r\nd', "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "p/ü€", "'quoted", " =1", "p/="),
)


def asked(**words: str) -> Question:
    return read_question([(name.rstrip("_"), text) for name, text in words.items()], TODAY)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def answered(question: Question, sums: Sums, limit: int | None = None) -> dict[str, Any]:
    return document(question, sums, [], limit=limit)


def test_without_a_word_the_last_seven_days_are_summed_by_day() -> None:
    question = asked()

    assert (question.first, question.last) == (date(2026, 11, 25), TODAY)
    assert (question.by, question.is_csv, len(question.days())) == ((Dimension.DAY,), False, 7)


def test_everything_that_can_be_asked_is_understood() -> None:
    question = asked(
        from_="2026-09-03",
        to="2026-11-30",
        by="client,model,key,day",
        client="app",
        model="p/m",
        key="k",
        limit="7",
        offset="3",
        format="csv",
    )

    assert question.by == tuple(Dimension)
    assert question.only == {"client": "app", "model": "p/m", "key": "k"}
    assert (question.limit, question.offset, question.is_csv) == (7, 3, True)


@pytest.mark.parametrize(
    ("words", "param", "told"),
    [
        ({"from_": "2026-09-02"}, "from", "nothing is kept of days before 2026-09-03"),
        ({"to": "2026-12-02"}, "to", "after today, 2026-12-01"),
        ({"to": "2026-09-02"}, "to", "nothing is kept of days before 2026-09-03"),
        ({"from_": "2026-12-01", "to": "2026-11-30"}, "from", "after to"),
        ({"from_": "20261130"}, "from", "such as 2026-11-30"),
        ({"to": "2026-11-31"}, "to", "such as 2026-11-30"),
        ({"group_by": "clinet"}, "group_by", "'clinet' is none of client, model, key, day"),
        ({"group_by": "day,day"}, "group_by", "twice"),
        ({"group_by": "day", "by": "key"}, "group_by", "twice"),
        ({"group_by": ""}, "group_by", "empty"),
        ({"client": ""}, "client", "empty"),
        ({"day": "2026-11-30"}, "day", "there are from, to,"),
        ({"limit": "0"}, "limit", "from 1 to 1000"),
        ({"limit": "1001"}, "limit", "from 1 to 1000"),
        ({"limit": "٣"}, "limit", "from 1 to 1000"),
        ({"offset": "-1"}, "offset", "from 0"),
        ({"format": "xml"}, "format", "json, csv"),
        ({"form": "csv"}, "form", "there is no parameter 'form'"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    words: dict[str, str], param: str, told: str
) -> None:
    with pytest.raises(ClientFault) as refused:
        asked(**words)

    assert refused.value.body.param == param
    assert told in refused.value.body.message


@given(
    names=st.lists(st.sampled_from(NASTY) | st.text(st.characters(codec="utf-8"), max_size=9)),
    numbers=st.lists(st.integers(0, 10**12), min_size=9, max_size=9),
)
def test_csv_says_the_same_as_json(names: list[str], numbers: list[int]) -> None:
    question = asked(by="model,key", format="csv")
    sums = question.sums()
    for name in names:
        counts = Counts(
            **dict(zip(NUMBERS, numbers, strict=False)),
            errors={"timeout": 2, "novel": 1, "cancelled": 3},
        )
        sums.add(Place(TODAY, "app", name, "k"), counts)

    told, items = rows(table(question, sums)), answered(question, sums)["items"]

    assert [{**row, "model": row["model"]} for row in told] == told
    for row, item in zip(told, items, strict=True):
        assert row["model"].removeprefix("'") == item["model"].removeprefix("'")
        assert not row["model"].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
        assert float(row["cost_usd"]) == item["cost_usd"] if row["cost_usd"] else True
        assert (row["cost_usd"] == "") == (item["cost_usd"] is None)
        for number in ("requests", "total_tokens", "errors", "cancelled", "saved_prompt_tokens"):
            assert int(row[number]) == item[number]
        assert int(row["errors_timeout"]) == item["errors_by_family"]["timeout"]
        assert row["errors_auth"] == "0"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_names_are_no_formulas(name: str) -> None:
    question = asked(by="model", format="csv")
    sums = question.sums()
    sums.add(Place(TODAY, "app", name, "k"), Counts(requests=1))

    (row,) = rows(table(question, sums))

    assert row["model"] == f"'{name}"


def test_cost_has_no_exponent_and_every_digit() -> None:
    assert plain(Counts(nano_usd=1)) == "0.000000001"
    assert plain(Counts(nano_usd=12_500_000_000)) == "12.5"
    assert plain(Counts(requests=1)) == "0"
    assert plain(Counts(requests=1, unpriced_requests=1)) is None


def test_pages_follow_each_other_without_a_gap() -> None:
    sums = asked(by="key").sums()
    for number in range(7):
        sums.add(Place(TODAY, "app", "p/m", f"k{number}"), Counts(requests=number))

    keys, offset = [], "0"
    while offset != "None":
        page = answered(asked(by="key", offset=offset), sums, limit=3)
        keys += [item["key"] for item in page["items"]]
        assert (page["total_items"], page["total"]["requests"]) == (7, 21)
        offset = str(page["next_offset"])

    assert keys == [f"k{number}" for number in range(7)]


def test_an_answer_of_too_many_groups_is_refused_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_gw.core.usage.MOST_GROUPS", 2)
    sums = asked(by="key").sums()
    for key in ("k0", "k1", "k1"):
        sums.add(Place(TODAY, "app", "p/m", key), Counts(requests=1))
    check_size(sums)

    sums.add(Place(TODAY, "app", "p/m", "k2"), Counts(requests=1))

    with pytest.raises(ClientFault, match=r"group by less"):
        check_size(sums)


def test_a_table_that_is_too_long_is_refused_not_cut() -> None:
    question = asked(by="key", format="csv")
    sums = question.sums()
    for number in range(MOST_IN_CSV + 1):
        sums.add(Place(TODAY, "app", "p/m", f"k{number}"), Counts(requests=1))

    with pytest.raises(ClientFault, match=r"limit and offset"):
        table(question, sums)
    part = asked(by="key", format="csv", limit="2", offset="5000")
    assert len(rows(table(part, sums))) == 1
