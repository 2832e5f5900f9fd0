"""Finds known secrets in a text, however they are spelt there, whole or in part (decision 0074).

Case and white space do not count. Each secret is looked for as it is, in base64 at each of its
three alignments (so also inside `user:secret`), and in hexadecimal; escapes are taken off before,
see `unescape`. Everything is made once per set of secrets; a look costs one slice and one lookup
per character.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MIN_SECRET_CHARACTERS: Final = 4  # shorter ones would strike out ordinary words
ANCHOR: Final = 8
"""Characters that are looked up; what is spelt with fewer must stand there exactly."""
WHOLE_BELOW: Final = 16
"""Of a shorter spelling no part counts: it may be made of ordinary words."""
LONGEST_LEFT: Final = 11
"""Characters in a row of a secret that may stay, such as the ends that providers print."""
COMMON: Final = 16
"""What so many secrets have in common is no secret: a vendor's prefix."""


class Spelling(NamedTuple):
    """One way to write a secret.

    Attributes:
        text: in lower case, without white space.
        least: how much of it in a row is struck, in characters.
    """

    text: str
    least: int


class Matcher:
    """Finds some secrets in texts.

    Args:
        secrets: those of fewer than four characters are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}
        forms = {form for secret in known for form in spelt(secret)}
        self._exact = tuple(form for form in forms if len(squeezed(form)) < ANCHOR)
        self._anchors: dict[str, list[tuple[Spelling, int]]] = {}
        for form in forms:
            text = squeezed(form)
            if len(text) >= ANCHOR:
                self._anchor(Spelling(text, least_of(text, is_plain=form in known)))
        shared = [anchor for anchor, places in self._anchors.items() if len(places) > COMMON]
        for anchor in shared:
            whole = [at for at in self._anchors[anchor] if at[0].least == len(at[0].text)]
            self._anchors[anchor] = whole

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Tell where secrets stand in a text, in no order; they may overlap."""
        for form in self._exact:
            start = text.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = text.find(form, start + 1)
        if not self._anchors:
            return
        lower = text.replace("\u0130", "i").lower()  # the only letter whose small form is two
        places = [place for place, char in enumerate(lower) if not char.isspace()]
        dense = "".join([lower[place] for place in places])
        for start, end in self._runs(dense):
            yield places[start], places[end - 1] + 1

    def _anchor(self, spelling: Spelling) -> None:
        """Note as few places of a spelling as every run of `least` has one of."""
        last = len(spelling.text) - ANCHOR
        if spelling.least == len(spelling.text):
            last = 0
        step = max(1, spelling.least - ANCHOR + 1)
        for place in {*range(0, last, step), last}:
            anchor = spelling.text[place : place + ANCHOR]
            self._anchors.setdefault(anchor, []).append((spelling, place))

    def _runs(self, text: str) -> Iterator[tuple[int, int]]:
        anchors, place, last = self._anchors, 0, len(text) - ANCHOR
        while place <= last:
            found = anchors.get(text[place : place + ANCHOR])
            place += 1
            for spelling, at in found or ():
                start, end = _run(text, place - 1, spelling.text, at)
                if end - start >= spelling.least:
                    yield start, end
                    place = max(place, end - ANCHOR + 1)


def _run(text: str, place: int, spelt_text: str, at: int) -> tuple[int, int]:
    """How far text and spelling are the same around a place of both."""
    before = 0
    while before < min(place, at) and text[place - before - 1] == spelt_text[at - before - 1]:
        before += 1
    after, most = ANCHOR, min(len(text) - place, len(spelt_text) - at)
    while after < most and text[place + after] == spelt_text[at + after]:
        after += 1
    return place - before, place + after


def spelt(secret: str) -> set[str]:
    """Give the forms in which a secret may stand in a text without escapes."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, raw.decode("latin-1"), raw.hex()}
    for shift in range(3):
        # What stands before and after it in the same base64 text does not change these.
        text = b64encode(bytes(shift) + raw).decode()
        text = text[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        forms |= {text, text.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= MIN_SECRET_CHARACTERS}


def squeezed(text: str) -> str:
    """Give a text in lower case, without white space."""
    return "".join(text.replace("\u0130", "i").lower().split())


def least_of(text: str, *, is_plain: bool) -> int:
    """How much of a spelling in a row is struck, in characters.

    Args:
        text: in lower case, without white space.
        is_plain: it is the secret itself; otherwise a code of it, which needs more characters.
    """
    if len(text) < WHOLE_BELOW:
        return len(text)
    most = LONGEST_LEFT + 1 if is_plain else LONGEST_LEFT * 4 // 3 + 2
    return min(len(text) // 2, most)
