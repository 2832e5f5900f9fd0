"""Which workers of a group new connections go to: the kernel is told, no socket is closed.

The sockets of a group share one address, and the kernel spreads new connections over them by
chance. A small program, given to any of them, chooses among some (decision 0076). What waits in the
queue of another is still accepted there, so nothing is lost by it.
"""

import ctypes
import struct
import sys
from collections.abc import Sequence
from typing import Final

from cluster_gw.supervisor.listening import WorkerSocket
from cluster_gw.supervisor.worker import Worker

# Of Linux (asm-generic/socket.h); Python has no names for them.
SO_ATTACH_REUSEPORT_CBPF: Final = 51
SO_DETACH_REUSEPORT_BPF: Final = 68
# Of linux/bpf_common.h and linux/filter.h.
LOAD_WORD: Final = 0x20
MODULO: Final = 0x94
JUMP_IF_EQUAL: Final = 0x15
RETURN: Final = 0x06
RANDOM: Final = 0xFFFFF000 + 56
NOBODY: Final = 0xFFFFFFFF  # the kernel chooses by itself then
MOST_TARGETS: Final = 1000  # a program has 4096 instructions at most

Instruction = tuple[int, int, int, int]


class Steering:
    """Steers new connections past some workers.

    Args:
        doors: the sockets of all workers, in the order in which they began to listen.
    """

    def __init__(self, doors: Sequence[WorkerSocket] = ()) -> None:
        self._doors = tuple(doors)
        self._past: frozenset[int] = frozenset()

    def follow(self, workers: Sequence[Worker]) -> None:
        """Pass by those that are drained, as long as another one answers.

        Args:
            workers: of the group, in order, as they were last looked at.
        """
        drained = frozenset([at for at, worker in enumerate(workers) if worker.is_drained])
        others = [worker for worker in workers if worker.is_answering and not worker.is_drained]
        self.pass_by(drained if others else frozenset())

    def pass_by(self, slots: frozenset[int]) -> bool:
        """Have new connections go to all workers but these.

        Where the kernel cannot do that, or a socket of the group was replaced, so that nobody knows
        their order any more, all workers get their share.

        Args:
            slots: places in the group, from 0; never all of them.

        Returns:
            Whether it is so now.
        """
        is_known = not any(door.is_replaced for door in self._doors)
        wanted = slots if is_known else frozenset[int]()
        if wanted != self._past and self._tell(wanted):
            self._past = wanted
        return self._past == slots

    def _tell(self, past: frozenset[int]) -> bool:
        places = [place for place in range(len(self._doors)) if place not in past]
        if not sys.platform.startswith("linux") or len(places) > MOST_TARGETS:
            return False
        for place in places:  # any that listens speaks for the whole group
            try:
                if not past:
                    self._doors[place].set_option(SO_DETACH_REUSEPORT_BPF, 0)
                else:
                    _attach(self._doors[place], program(places))
            except OSError:
                continue
            return True
        return False


def program(places: Sequence[int]) -> list[Instruction]:
    """Write the program that gives each of these places an equal share of new connections."""
    draw: list[Instruction] = [(LOAD_WORD, 0, 0, RANDOM), (MODULO, 0, 0, len(places))]
    for turn, place in enumerate(places):
        draw += [(JUMP_IF_EQUAL, 0, 1, turn), (RETURN, 0, 0, place)]
    return [*draw, (RETURN, 0, 0, NOBODY)]


def _attach(door: WorkerSocket, instructions: Sequence[Instruction]) -> None:
    text = b"".join(struct.pack("=HBBI", *each) for each in instructions)
    held = ctypes.create_string_buffer(text, len(text))  # must live until the kernel has read it
    filter_program = struct.pack("HL", len(instructions), ctypes.addressof(held))
    door.set_option(SO_ATTACH_REUSEPORT_CBPF, filter_program)
