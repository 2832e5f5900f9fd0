"""Which lines of a script can run at all, read from the byte code of Lua 5.1."""

import struct
from collections.abc import Iterator
from typing import Final

from lupa import lua51  # type: ignore[import-untyped] # it has no types

HEADER_BYTES: Final = 12
NIL, BOOLEAN, NUMBER, STRING = 0, 1, 3, 4


def active_lines(text: str) -> set[int]:
    """The numbers of all lines that hold an instruction, in any function of the text."""
    lua = lua51.LuaRuntime(encoding="latin-1")
    dump = lua.eval("function(text) return string.dump(assert(loadstring(text))) end")
    code: str = dump(text.replace("#!", "--", 1).encode().decode("latin-1"))
    return set(_Reader(code.encode("latin-1")).lines())


class _Reader:
    """Walks over the functions of dumped code: little endian, integers of 4 bytes, sizes of 8."""

    def __init__(self, code: bytes) -> None:
        assert code[:5] == b"\x1bLua\x51"
        assert tuple(code[7:11]) == (4, 8, 4, 8), "sizes of int, size_t, instruction and number"
        self._code = code
        self._at = HEADER_BYTES

    def lines(self) -> Iterator[int]:
        """The line of every instruction of the function here, and of those inside it."""
        self._text()
        self._at += 2 * 4 + 4  # the lines it spans; upvalues, parameters, varargs, stack
        instructions = self._number()
        self._at += 4 * instructions
        for _ in range(self._number()):
            self._constant()
        for _ in range(self._number()):
            yield from self.lines()
        # The last instruction is the return that Lua adds; it need not be reached.
        yield from [self._number() for _ in range(self._number())][:-1]
        for _ in range(self._number()):  # names of local variables
            self._text()
            self._at += 2 * 4
        for _ in range(self._number()):  # names of upvalues
            self._text()

    def _number(self) -> int:
        self._at += 4
        return int(struct.unpack_from("<i", self._code, self._at - 4)[0])

    def _text(self) -> None:
        (size,) = struct.unpack_from("<Q", self._code, self._at)
        self._at += 8 + size

    def _constant(self) -> None:
        kind = self._code[self._at]
        self._at += 1
        if kind == STRING:
            self._text()
        else:
            self._at += {NIL: 0, BOOLEAN: 1, NUMBER: 8}[kind]
