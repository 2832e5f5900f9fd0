"""Answers of the admin API for people: tables of what is listed, lines of what is told."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from cluster_gw.cli.calling import Answer, Call, ask, print_bytes, refuse
from cluster_gw.supervisor.failure import ExitCode

PIPE_WIDTH: Final = 200
Row = Mapping[str, Any]
Show = Callable[[Any], None]


def tell(config: str | None, call: Call, show: Show, *, as_json: bool) -> ExitCode:
    """Make a call and print what came of it; how the command ends.

    Args:
        config: which file, as the option says.
        call: what is asked.
        show: prints the document for people.
        as_json: the answer's own bytes are printed instead.
    """
    answer: Answer = ask(config, call)
    if as_json:
        return print_bytes(answer)
    if answer.exit_code is not ExitCode.OK:
        return refuse(answer)
    show(answer.document())
    return ExitCode.OK


def print_rows(rows: Sequence[Row], columns: Mapping[str, str], empty: str) -> None:
    """Print rows as a table.

    Args:
        rows: what is shown, one line each.
        columns: heads by the names of fields; a dot leads into a field.
        empty: printed where there are none.
    """
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    if not rows:
        console.print(empty, markup=False, highlight=False)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in columns.values():
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(text_of(_within(row, name)) for name in columns))
    console.print(table)


def print_lines(document: Row) -> None:
    """Print the fields of a document, a line each."""
    width = max(map(len, document), default=0)
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, soft_wrap=True)
    for name, value in document.items():
        console.print(f"{name:<{width}}  {text_of(value)}", markup=False, highlight=False)


def text_of(value: Any) -> str:
    """Give a value as one cell."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case list() if all(isinstance(one, str) for one in value):
            return ", ".join(value) or "-"
        case _:
            return msgspec.json.encode(value).decode()


def seconds(ms: int | None) -> str | None:
    """Give a time in ms as seconds."""
    return None if ms is None else f"{ms / 1000:.1f} s"


def _within(row: Row, name: str) -> Any:
    found: Any = row
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
