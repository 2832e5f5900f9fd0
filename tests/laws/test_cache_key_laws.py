"""Two requests have one key if and only if they mean the same: thousands of pairs, made up.

What a request means is a plain document here; one is written in two of the many ways in which it
can be, or is changed in one place first.
"""

import random
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.cache_key import Keyed, canonical_form, digest_of
from cluster_gw.surfaces.chat_completions import ChatCompletions

CHAT: Final = ChatCompletions()
ALPHABET: Final = 'ab "\\/:{}[],1.0é\n\u2028😀\u00ff'
NUMBERS: Final = tuple(
    map(Decimal, ("0", "1", "2", "0.5", "0.7", "1.25", "-1", "1e-9", "12345678901234567890"))
)
ROLES: Final = ("user", "assistant", "system")
FIRST_CLASS: Final = ("temperature", "top_p", "n", "presence_penalty", "seed", "top_logprobs")
UNKNOWN: Final = ("top_k", "min_p", "client", "v", "surface", "mirostat", "é")

Document = dict[str, Any]


def text(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randrange(6)))


def value(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randrange(6 if depth else 4)
    if kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return text(rng)
    if kind == 2:
        return rng.choice([True, False])
    if kind == 3:
        return None
    if kind == 4:
        return [value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {text(rng): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def tool(rng: random.Random) -> Document:
    name = f"f{rng.randrange(9)}"
    return {"type": "function", "function": {"name": name, "parameters": {"x": value(rng)}}}


def meaning(rng: random.Random) -> Document:
    """What a request may mean; nothing in it is said by its absence as well."""
    said: Document = {
        "messages": [
            {"role": rng.choice(ROLES), "content": text(rng)} for _ in range(rng.randrange(1, 4))
        ]
    }
    if rng.random() < 0.3:
        said["temperature"] = rng.choice([Decimal(0), Decimal("0.7"), Decimal(1)])
    if rng.random() < 0.2:
        said["n"] = Decimal(rng.randrange(2, 5))
    if rng.random() < 0.2:
        said["seed"] = rng.choice(NUMBERS)
    if rng.random() < 0.2:
        said["stop"] = [f"s{text(rng)}" for _ in range(rng.randrange(1, 5))]
    if rng.random() < 0.2:
        said["tools"] = [tool(rng)]
    if rng.random() < 0.2:
        said["max_tokens"] = Decimal(rng.randrange(1, 5))
    if rng.random() < 0.2:
        said["reasoning_effort"] = rng.choice(["low", "high"])
    if rng.random() < 0.2:
        said["model"] = rng.choice(["auto:fast", "a/one", "AUTO"])
    if rng.random() < 0.5:
        said[rng.choice(UNKNOWN)] = value(rng)
    return said


def change_message(said: Document, rng: random.Random) -> None:
    message = rng.choice(said["messages"])
    message["content"] += rng.choice(ALPHABET)


def change_role(said: Document, rng: random.Random) -> None:
    message = rng.choice(said["messages"])
    message["role"] = ROLES[(ROLES.index(message["role"]) + 1) % 3]


def add_message(said: Document, rng: random.Random) -> None:
    said["messages"].insert(rng.randrange(3), {"role": "developer", "content": "x"})


def change_number(said: Document, rng: random.Random) -> None:
    name = rng.choice(["temperature", "seed"])
    said[name] = (said.get(name) or Decimal(0)) + Decimal("0.25")


def change_model(said: Document, rng: random.Random) -> None:
    said["model"] = f"b/{text(rng)}"


def change_bound(said: Document, rng: random.Random) -> None:
    said["max_tokens"] = said.get("max_tokens", Decimal(0)) + rng.randrange(1, 4)


def change_stop(said: Document, rng: random.Random) -> None:
    said["stop"] = [*said.get("stop", [])[:3], f"t{text(rng)}"]


def change_tools(said: Document, rng: random.Random) -> None:
    said["tools"] = [*said.get("tools", []), tool(rng)]


def change_unknown(said: Document, rng: random.Random) -> None:
    said[f"{rng.choice(UNKNOWN)}_"] = value(rng)


def change_effort(said: Document, rng: random.Random) -> None:
    said["reasoning_effort"] = rng.choice(["minimal", "medium"])


CHANGES: Final[tuple[Callable[[Document, random.Random], None], ...]] = (
    *(change_message, change_role, add_message, change_number, change_model, change_bound),
    *(change_stop, change_tools, change_unknown, change_effort),
)


def written(said: Document, rng: random.Random) -> bytes:
    """One of the ways in which a request can be written."""
    told: Document = {**said}
    add_nothing(told, rng)
    if len(told.get("stop") or ()) == 1 and rng.random() < 0.5:
        told["stop"] = told["stop"][0]
    if "max_tokens" in told and rng.random() < 0.5:
        told["max_completion_tokens"] = told.pop("max_tokens")
    if "reasoning_effort" in told and rng.random() < 0.5:
        told["reasoning"] = {"effort": told.pop("reasoning_effort")}
    return write(told, rng, exact=frozenset({"n", "max_tokens", "max_completion_tokens"})).encode()


def add_nothing(told: Document, rng: random.Random) -> None:
    """Say what changes nothing: framing, labels, defaults."""
    if rng.random() < 0.5:
        told |= {"stream": rng.choice([True, False]), "user": text(rng)}
    if told.get("stream") and rng.random() < 0.5:
        told["stream_options"] = {"include_usage": rng.choice([True, False])}
    for name, default in (("n", 1), ("top_p", 1), ("frequency_penalty", 0)):
        if name not in told and rng.random() < 0.2:
            told[name] = default if name == "n" else Decimal(default)
    for name in ("seed", "stop", "tools", "logit_bias", "temperature"):
        if name not in told and rng.random() < 0.1:
            told[name] = None
    if "model" not in told and rng.random() < 0.5:
        told["model"] = rng.choice(["", "auto"])


def write(one: Any, rng: random.Random, exact: frozenset[str] = frozenset()) -> str:
    """JSON in one of its many forms; members in `exact` are plain whole numbers."""
    blank = rng.choice(["", "", " ", "\n\t"])
    if isinstance(one, dict):
        members = list(one.items())
        rng.shuffle(members)
        told = [
            f"{blank}{quoted(name, rng)}{blank}:"
            + (str(int(inner)) if name in exact else write(inner, rng))
            for name, inner in members
        ]
        return "{" + ",".join(told) + blank + "}"
    if isinstance(one, list):
        return "[" + f",{blank}".join(write(inner, rng) for inner in one) + "]"
    if isinstance(one, str):
        return quoted(one, rng)
    if isinstance(one, Decimal):
        return number(one, rng)
    return msgspec.json.encode(one).decode()


def quoted(said: str, rng: random.Random) -> str:
    told = ""
    for one in said:
        if one not in ":{" and rng.random() < 0.1:
            units = one.encode("utf-16-be").hex()
            told += "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        else:
            told += msgspec.json.encode(one).decode()[1:-1]
    return f'"{told}"'


def number(said: Decimal, rng: random.Random) -> str:
    if not said and rng.random() < 0.3:
        return rng.choice(["0.0", "-0", "0e5", "-0.00"])
    plain = f"{said:f}"
    kind = rng.randrange(4)
    if kind == 0:
        return plain if "." not in plain else plain + "0"
    if kind == 1:
        return f"{said.scaleb(3):f}e-3"
    if kind == 2:
        return f"{said.scaleb(-2):f}E+2"
    return plain


def key_of(body: bytes) -> str:
    request = CHAT.decode_request(body)
    assert isinstance(request, ChatRequest), (body, request)
    return digest_of(canonical_form(Keyed(surface="chat", request=request)))


def check_pairs(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count // 2):
        said = meaning(rng)
        one, other = written(said, rng), written(said, rng)
        key = key_of(one)
        assert key == key_of(other), (one, other)
        changed = copied(said)
        rng.choice(CHANGES)(changed, rng)
        third = written(changed, rng)
        assert key != key_of(third), (one, third)


def copied(one: Any) -> Any:
    if isinstance(one, dict):
        return {name: copied(inner) for name, inner in one.items()}
    return [copied(inner) for inner in one] if isinstance(one, list) else one


def test_pairs_have_one_key_if_and_only_if_they_mean_the_same() -> None:
    check_pairs(2_000, seed=4)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_hundred_thousand_pairs_do_too(seed: int) -> None:
    check_pairs(25_000, seed)


def test_no_two_of_many_meanings_share_a_key() -> None:
    rng = random.Random(9)
    found: dict[str, Document] = {}
    for _ in range(1_000):
        said = meaning(rng)
        before = found.setdefault(key_of(written(said, rng)), said)
        assert before == said
    assert all(one != other for one, other in pairwise(sorted(found)))
