from cluster_gw.store.journal import Ended, Journal, Running
from cluster_gw.units import LeaseId


async def nothing(_ttl_ms: int) -> None:
    raise AssertionError("nobody asked for it")


def running(part: str) -> Running:
    return Running(part=part, ends_at_s=9.0, register=nothing)


def journal_of(*parts: str) -> tuple[Journal, list[tuple[str, float]]]:
    """Requests that ended, one a second, and what was settled: part and age."""
    journal, settled = Journal(max_entries=4), list[tuple[str, float]]()
    for at_s, part in enumerate(parts):

        def settle(age_s: float, part: str = part) -> None:
            settled.append((part, age_s))

        journal.add(Ended(part, float(at_s), settle))
    return journal, settled


def test_oldest_are_settled_first_with_their_age() -> None:
    journal, settled = journal_of("a", "a", "a")

    assert journal.settle("a", 10.0, 2) == 2

    assert settled == [("a", 10.0), ("a", 9.0)]
    assert (journal.unwritten, journal.replayed) == (1, 2)


def test_other_parts_wait_in_their_order() -> None:
    journal, settled = journal_of("b", "a", "b", "a")

    assert journal.settle("a", 10.0, 9) == 2
    assert journal.settle("b", 10.0, 9) == 2

    assert settled == [("a", 9.0), ("a", 7.0), ("b", 10.0), ("b", 8.0)]
    assert journal.settle("a", 10.0, 9) == 0


def test_ended_and_running_fill_it_together() -> None:
    journal, _ = journal_of("a", "a")
    full = []
    for name in ("x", "y"):
        journal.running[LeaseId(name)] = running("a")
        full.append(journal.is_full)

    assert full == [False, True]
    assert len(journal) == 4
    assert journal.parts() == {"a"}


def test_what_is_registered_is_not_asked_for_again() -> None:
    journal, _ = journal_of()
    journal.running = {LeaseId(n): running(part) for n, part in (("x", "a"), ("y", "b"))}
    assert journal.unregistered("a") == [journal.running[LeaseId("x")]]

    journal.running[LeaseId("x")].is_registered = True

    assert journal.unregistered("a") == []
