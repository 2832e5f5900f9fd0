"""Where the values of a document came from, so that a fault can tell it without showing them."""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from cluster_gw.settings.faults import Expanded, Faults, at_index, at_name

VARIABLE: Final = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")


def name_origins(plain: Any, secrets: Collection[str], faults: Faults) -> None:
    """Add to each fault the variable its value came from, where it did.

    Args:
        plain: the document with every reference replaced but those of secrets.
        secrets: the paths of secrets, which `env:NAME` resolves.
        faults: what is wrong with it.
    """
    told = dict(_origins(plain, "", secrets))
    for at, line in enumerate(faults.lines):
        origin = next((words for path, words in told.items() if line.startswith(f"{path}: ")), "")
        if origin and origin not in line:
            faults.lines[at] = f"{line} ({origin})"


def _origins(value: Any, path: str, secrets: Collection[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _origins(item, at_name(path, name), secrets)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _origins(item, at_index(path, place), secrets)
    elif isinstance(value, Expanded) and value.names:
        many = "s" if len(value.names) > 1 else ""
        yield path, f"environment variable{many} {', '.join(value.names)}"
    elif isinstance(value, str) and (named := VARIABLE.fullmatch(value)):
        if path in secrets:
            yield path, f"environment variable {named[1]}"
        else:
            yield path, f"env: is for secrets; write ${{{named[1]}}}"
