"""Runs scripts outside Redis so that they can be watched: line by line, key by key.

Redis' own Lua takes no hook. Here a script runs in the same version of Lua in this process;
what it calls goes to the real server, command by command. As a plugin of pytest (`-p
tests.lua.traced`) it does so with every script that a test registers, and writes at the end which
lines ran.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from lupa import lua51  # type: ignore[import-untyped] # it has no types
from redis import Redis
from redis.commands.core import Script as Registered
from redis.crc import key_slot
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import INCLUDE, find_folder, load_scripts
from tests.lua.key_lives import longest_life_ms
from tests.lua.packed import BYTES, from_lua, pack, to_lua, unpack

HITS_FILE: Final = "GW_LUA_HITS"
GONE: Final = -2  # as PTTL says
STAYS: Final = -1
NO_KEYS: Final = frozenset({"TIME", "PUBLISH"})
ALL_KEYS: Final = frozenset({"EXISTS", "DEL"})
RUNNER: Final = """
local forward, pack, unpack_from = ...
local hits = {}
local info = debug.getinfo
debug.sethook(function(_, line)
  local lines = hits[info(2, 'S').source]
  if lines then
    lines[line] = true
  end
end, 'l')
local function pcall_redis(...)
  local is_good, reply = forward(...)
  return is_good and reply or is_good == false and { err = reply } or false
end
redis = {
  pcall = pcall_redis,
  call = function(...)
    local is_good, reply = forward(...)
    if not is_good then
      error({ err = reply })
    end
    return reply
  end,
}
struct = { pack = pack, unpack = unpack_from }
KEYS, ARGV = {}, {}
setmetatable(_G, { __newindex = function(_, name) error('a global: ' .. name) end })
local run = {}
function run.load(text, name)
  hits['=' .. name] = {}
  return assert(loadstring(text, '=' .. name))
end
function run.call(script, keys, arguments)
  KEYS, ARGV = keys, arguments
  return pcall(script)
end
function run.hits(name)
  local lines = {}
  for line in pairs(hits['=' .. name] or {}) do
    lines[#lines + 1] = line
  end
  return lines
end
return run
"""


class Line(NamedTuple):
    """Where a line of an expanded script stands."""

    file: str
    number: int


def lines_of(name: str) -> list[Line]:
    """Where each line of an expanded script comes from."""
    folder = find_folder()
    return list(_lines(folder / f"{name}.lua", folder, set()))


def _lines(path: Path, folder: Path, seen: set[Path]) -> Iterator[Line]:
    if path in seen:
        return
    seen.add(path)
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        include = INCLUDE.match(text.rstrip())
        if include:
            yield from _lines(folder / include[1], folder, seen)
        else:
            yield Line(path.relative_to(folder).as_posix(), number)


class Tracer:
    """Runs scripts; remembers which lines ran.

    Attributes:
        stray: keys that a script touched without having been given them.
        scattered: calls whose keys lie in several slots.
        lasting: keys that were left without the life that is documented.
        calls: how often each script ran.
    """

    def __init__(self) -> None:
        self.stray: list[str] = []
        self.scattered: list[str] = []
        self.lasting: list[str] = []
        self.calls: dict[str, int] = {}
        self._names = {script.text: script.name for script in load_scripts().values()}
        self._lua = lua51.LuaRuntime(unpack_returned_tuples=True, encoding=BYTES)
        self._run = self._lua.execute(RUNNER, self._forward, pack, unpack)
        self._loaded: dict[str, Any] = {}
        self._keys: Sequence[str] = ()
        self._link: Any = None
        self._looks: dict[str, Redis] = {}
        self._one_at_a_time = threading.Lock()

    def knows(self, text: str) -> bool:
        """Whether this is one of our scripts."""
        return text in self._names

    def hits(self, name: str) -> list[int]:
        """The lines of an expanded script that ran."""
        return sorted(self._run.hits(name).values())

    def run(self, client: Any, text: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run a script as the server would, one at a time; the keys of the call share a slot."""
        with self._one_at_a_time:
            return self._run_alone(client, text, keys, args)

    def _run_alone(self, client: Any, text: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        name, pool = self._names[text], client.connection_pool
        self._load(name, text)
        self.calls[name] = self.calls.get(name, 0) + 1
        look = self._observer(pool.connection_kwargs)
        self._keys, self._link = keys, pool.get_connection()
        given = [
            self._lua.table_from([to_lua(str(one)) for one in words]) for words in (keys, args)
        ]
        lasting = {key for key in keys if look.pttl(key) == STAYS}  # written by the test itself
        try:
            is_good, reply = self._run.call(self._loaded[name], *given)
        finally:
            pool.release(self._link)
        self.lasting += [
            f"{name}: {key}" for key in keys if not (key in lasting or lives(look, key))
        ]
        if is_good and not _is_error(reply):
            return _to_python(reply)
        raise ResponseError(reply["err"] if _is_error(reply) else str(reply))

    def _load(self, name: str, text: str) -> None:
        if name not in self._loaded:
            self._loaded[name] = self._run.load(text.replace("#!", "--", 1), name)

    def _forward(self, *words: Any) -> tuple[bool, Any]:
        """One command of a script, to the server."""
        texts = [_to_word(word) for word in words]
        command = texts[0].upper()
        if command not in NO_KEYS:
            touched = map(from_lua, texts[1:] if command in ALL_KEYS else texts[1:2])
            self.stray += [f"{command} {key}" for key in touched if key not in self._keys]
        try:
            return True, self._to_lua(self._ask(*(text.encode(BYTES) for text in texts)))
        except ResponseError as fault:
            return False, str(fault)

    def _ask(self, *words: bytes) -> Any:
        self._link.send_command(*words)
        return self._link.read_response(disable_decoding=True)

    def _observer(self, place: Mapping[str, Any]) -> Redis:
        """A client with all rights on the same server."""
        where = {name: place[name] for name in ("path", "host", "port") if name in place}
        name = str(where)
        if name not in self._looks:
            path = where.pop("path", None)
            self._looks[name] = Redis(protocol=2, unix_socket_path=path, **where)
        return self._looks[name]

    def _to_lua(self, reply: Any) -> Any:
        if isinstance(reply, list):
            return self._lua.table_from([self._to_lua(part) for part in reply])
        if isinstance(reply, bytes):
            return reply.decode(BYTES)
        return False if reply is None else reply


def _to_word(word: Any) -> str:
    """A word as Redis gets it from Lua."""
    return word if isinstance(word, str) else f"{word:.17g}"


def _is_error(reply: Any) -> bool:
    return lua51.lua_type(reply) == "table" and reply["err"] is not None


def _to_python(reply: Any) -> Any:
    """A reply as a client gets it: whole numbers, texts, lists that end at the first nil."""
    if lua51.lua_type(reply) == "table":
        return [_to_python(reply[at]) for at in range(1, len(reply) + 1)]
    if isinstance(reply, str):
        return from_lua(reply)
    return int(reply) if isinstance(reply, int | float) and reply is not True else reply


def lives(look: Redis, key: str) -> bool:
    """Whether a key is gone, or lives no longer than the table of keys says."""
    left_ms = int(look.pttl(key))
    longest_ms = longest_life_ms(key) if left_ms != GONE else None
    return longest_ms is None or 0 < left_ms <= longest_ms


class TracedScript(Registered):
    """What `register_script` gives while scripts are traced."""

    tracer: Tracer

    def __call__(self, keys: Any = None, args: Any = None, client: Any = None) -> Any:
        """Run it here, unless no server of a cluster would."""
        names, text = [str(key) for key in keys or []], str(self.script)
        if len({key_slot(name.encode()) for name in names}) == 1:
            return self.tracer.run(client or self.registered_client, text, names, args or [])
        reply = super().__call__(keys, args, client)
        self.tracer.scattered.append(f"{text.splitlines()[1]}: {names}")
        return reply


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of tests showed; `hits` are line numbers of expanded scripts."""

    hits: dict[str, list[int]]
    calls: dict[str, int]
    stray: list[str]
    scattered: list[str]
    lasting: list[str]


def pytest_configure(config: pytest.Config) -> None:
    """Trace every script that is registered from now on."""
    tracer = Tracer()
    register = Redis.register_script

    def traced(client: Redis, script: Any) -> Any:
        if not tracer.knows(script):
            return register(client, script)
        made = TracedScript(client, script)
        made.tracer = tracer
        return made

    Redis.register_script = traced  # type: ignore[assignment,method-assign] # that is the trick
    config.stash[TRACER] = tracer


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was seen to the file that the environment names."""
    tracer = session.config.stash[TRACER]
    report = Report(
        hits={name: tracer.hits(name) for name in load_scripts()},
        calls=tracer.calls,
        stray=sorted(set(tracer.stray)),
        scattered=sorted(set(tracer.scattered)),
        lasting=sorted(set(tracer.lasting)),
    )
    Path(os.environ[HITS_FILE]).write_bytes(msgspec.json.encode(report))


TRACER: Final = pytest.StashKey[Tracer]()
