"""New connections pass by workers that are drained, and nothing is lost by it."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.supervisor.listening import WorkerSocket, listen
from cluster_gw.supervisor.steering import Steering
from tests.fakes.group import get_json
from tests.supervisor.conftest import EXTERNAL, RunningGroup, StartGroup, free_port, wait_for

PORT_OF_THREE = 3
MANY = 60  # by chance all of them miss one of three once in 10^10


class Doors:
    """Three sockets of one port, and who is connected by which."""

    def __init__(self) -> None:
        self.port = free_port()
        sockets = listen("127.0.0.1", self.port, PORT_OF_THREE)
        self.all = [WorkerSocket("127.0.0.1", self.port, each) for each in sockets]
        self._waiting: list[socket.socket] = []

    def knock(self) -> None:
        """Connect often; nobody accepts yet."""
        self._waiting += [socket.create_connection(("127.0.0.1", self.port)) for _ in range(MANY)]

    def accepted(self) -> Counter[int]:
        """Accept what waits at each door; how many there were."""
        counted: Counter[int] = Counter()
        for slot, door in enumerate(self.all):
            own = socket.socket(fileno=os.dup(door.fileno()))
            while (taken := accept(own)) is not None:
                taken.close()
                counted[slot] += 1
            own.close()
        return counted

    def close(self) -> None:
        for waiting in self._waiting:
            waiting.close()
        for door in self.all:
            door.close()


def accept(door: socket.socket) -> socket.socket | None:
    door.setblocking(False)
    try:
        return door.accept()[0]
    except OSError:  # nobody waits there, or it does not listen
        return None


@pytest.fixture
def doors() -> Iterator[Doors]:
    made = Doors()
    yield made
    made.close()


@pytest.mark.parametrize("past", [{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}])
def test_new_connections_go_to_all_but_those_that_are_passed_by(
    doors: Doors, past: set[int]
) -> None:
    assert Steering(doors.all).pass_by(frozenset(past))

    doors.knock()

    counted = doors.accepted()
    assert set(counted) == {0, 1, 2} - past
    assert counted.total() == MANY


def test_who_is_passed_by_no_longer_gets_a_share_again(doors: Doors) -> None:
    steering = Steering(doors.all)
    steering.pass_by(frozenset({1}))

    assert steering.pass_by(frozenset())
    doors.knock()

    assert set(doors.accepted()) == {0, 1, 2}


def test_what_waits_at_a_door_that_is_passed_by_is_still_accepted_there(doors: Doors) -> None:
    doors.knock()

    Steering(doors.all).pass_by(frozenset({0, 1}))

    assert set(doors.accepted()) == {0, 1, 2}


def test_of_a_group_whose_sockets_were_replaced_nobody_is_passed_by(doors: Doors) -> None:
    steering = Steering(doors.all)
    steering.pass_by(frozenset({1}))
    doors.all[0].step_back()

    assert not steering.pass_by(frozenset({1}))
    doors.knock()

    assert set(doors.accepted()) == {1, 2}  # nobody listens at the first


def who_answers(group: RunningGroup) -> set[str]:
    """The workers that answer new connections now."""
    url = f"http://127.0.0.1:{group.document['server']['port']}/who"
    return {str(get_json(url)["worker"]) for _ in range(20)}


def test_a_drained_worker_leaves_its_group_and_comes_back(
    start_group: StartGroup, tmp_path: Path
) -> None:
    document = {"server": {"workers": 2}, **EXTERNAL}
    group = start_group(document, STUB_DRAINS=str(tmp_path)).wait_until_ready()
    wait_for(lambda: group.status() == "ready")
    first, second = sorted(wait_for(lambda: found if len(found := who_answers(group)) == 2 else 0))
    with group.data.stream("GET", "/count") as kept:
        kept.read()

        (tmp_path / first).touch()
        (tmp_path / second).touch()
        wait_for(lambda: group.status() == "draining")
        assert who_answers(group) == {first, second}  # of nobody else there is a better one
        (tmp_path / second).unlink()
        wait_for(lambda: who_answers(group) == {second})
        assert group.data.get("/count").status_code == 200  # on the connection that it has
        (tmp_path / first).unlink()
        wait_for(lambda: who_answers(group) == {first, second})


def test_the_next_life_of_a_drained_worker_takes_part(
    start_group: StartGroup, tmp_path: Path
) -> None:
    document = {"server": {"workers": 2}, **EXTERNAL}
    group = start_group(document, STUB_DRAINS=str(tmp_path)).wait_until_ready()
    wait_for(lambda: group.status() == "ready")
    drained = group.ask()
    (tmp_path / drained["worker"]).touch()
    wait_for(lambda: drained["worker"] not in who_answers(group))

    os.kill(drained["pid"], signal.SIGKILL)

    wait_for(lambda: len(who_answers(group)) == 2)
    assert drained["worker"] not in who_answers(group)
