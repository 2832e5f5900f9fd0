"""What the overlay notes of combos whose memory does not count any more."""

from cluster_gw.settings.overlay import MAX_GONE, Table, with_epochs


def test_nothing_is_noted_while_nothing_moves() -> None:
    table: Table = {"models": {"a/one": {"weight": 0.5}}}

    assert with_epochs(table, 7, [], ["auto"]) is table


def test_later_change_of_a_combo_takes_the_place_of_the_earlier() -> None:
    once = with_epochs({}, 7, ["auto", "code"], ["auto", "code"])

    twice = with_epochs(once, 9, ["code"], ["auto", "code"])

    assert twice == {"epochs": {"auto": {"epoch": 7}, "code": {"epoch": 9}}}


def test_of_combos_that_are_gone_the_latest_are_known() -> None:
    table: Table = {}
    for number in range(MAX_GONE + 10):
        table = with_epochs(table, number + 1, [f"c{number}"], ["auto"])
    table = with_epochs(table, 9999, ["auto"], ["auto"])

    kept = table["epochs"]
    assert len(kept) == MAX_GONE + 1
    assert ("c9" in kept, "c10" in kept, kept["auto"]) == (False, True, {"epoch": 9999})
