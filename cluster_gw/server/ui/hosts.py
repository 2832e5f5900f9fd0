"""Whether a browser may be shown the dashboard under the name it asked for.

Somebody else's page may point a name of its own at our address (DNS rebinding) and would then be
of one origin with the dashboard: it could read the token that is typed there. An address in
digits or `localhost` cannot be pointed anywhere, other names have to be known.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import Final

LOCAL: Final = "localhost"
HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?")


def may_show(host: str, names: Collection[str]) -> bool:
    """Whether the dashboard may be shown under a name.

    Args:
        host: the header `Host`.
        names: that are known, in lower case.
    """
    found = HOST.fullmatch(host.strip().lower())
    if found is None:
        return False
    name = found[1].removesuffix(".")
    return is_unmovable(name) or name in names


def is_unmovable(name: str) -> bool:
    """Whether nobody can point a name elsewhere: `localhost`, and addresses in digits."""
    if name == LOCAL or name.endswith(f".{LOCAL}"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
