"""Which official client does what over which dialect: what is promised, and its table.

`python -m tests.sdk.matrix` writes the table into docs/compatibility.md; a test compares it, and
`test_matrix.py` keeps every promise of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.fakes.every_dialect import PLACE, TEXT, TOLD, VECTOR

PAGE: Final = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN: Final = "<!-- matrix: made by `make docs` -->\n"
END: Final = "<!-- end of matrix -->\n"
DIALECTS: Final = ("openai", "openai-responses", "anthropic", "gemini")
LETTERS: Final = dict(zip(DIALECTS, "ORAG", strict=True))
EXPECTED: Final[dict[str, Any]] = {
    "chat": TEXT,
    "streaming": TEXT,
    "tools": TOLD,
    "structured output": dict(PLACE),
    "embeddings": list(VECTOR),
    "errors": [400, 404],
    "cancellation": "left",
}
"""What a client sees of each feature, whatever the upstream speaks."""
MODELS: Final = ("say", "call", "place", "refuse", "wait")
GENERATION: Final = tuple(feature for feature in EXPECTED if feature != "embeddings")
EMBEDDING_DIALECTS: Final = ("openai", "gemini")  # the others have no embeddings


@dataclass(frozen=True, slots=True)
class Row:
    """A client of the table.

    Attributes:
        id: its name in tests; those of JavaScript begin with `js`.
        title: language and package.
        surface: what it calls here.
        embeds: whether it can ask for embeddings here.
    """

    id: str
    title: str
    surface: str
    embeds: bool = False

    def dialects(self, feature: str) -> tuple[str, ...]:
        """Over which dialects of upstreams a feature is promised."""
        if feature != "embeddings":
            return DIALECTS
        return EMBEDDING_DIALECTS if self.embeds else ()


ROWS: Final = (
    Row("py-chat", "Python `openai`", "chat completions", embeds=True),
    Row("py-responses", "Python `openai`", "responses"),
    Row("py-messages", "Python `anthropic`", "messages"),
    Row("py-gemini", "Python `google-genai`", "Gemini's", embeds=True),
    Row("py-agent-chat", "agent of Python's `pydantic-ai`", "chat completions"),
    Row("py-agent-responses", "agent of Python's `pydantic-ai`", "responses"),
    Row("js-chat", "JavaScript `openai`", "chat completions", embeds=True),
    Row("js-responses", "JavaScript `openai`", "responses"),
    Row("js-messages", "JavaScript `@anthropic-ai/sdk`", "messages"),
    Row("js-gemini", "JavaScript `@google/genai`", "Gemini's", embeds=True),
    Row(
        "js-agent-chat",
        "agent of JavaScript's `ai`, `@ai-sdk/openai`",
        "chat completions",
        embeds=True,
    ),
    Row("js-agent-responses", "agent of JavaScript's `ai`, `@ai-sdk/openai`", "responses"),
)


def cells() -> Iterator[tuple[str, str, str]]:
    """Every promise: client, dialect of the upstream, feature."""
    for row in ROWS:
        for feature in EXPECTED:
            for dialect in row.dialects(feature):
                yield row.id, dialect, feature


def table() -> str:
    """The promises as a table of Markdown."""
    head = ["client", "API", *EXPECTED]
    lines = [head, ["---"] * len(head)]
    for row in ROWS:
        marks = [" ".join(LETTERS[one] for one in row.dialects(name)) for name in EXPECTED]
        lines.append([row.title, row.surface, *(mark or "none" for mark in marks)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def written(page: str) -> str:
    """The page with the table of today.

    Raises:
        ValueError: the page has no place for it.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError("the page has no place for the matrix")
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
