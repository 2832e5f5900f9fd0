"""The least rights a Redis user of the gateway needs, read from the scripts themselves."""

import re
from pathlib import Path
from typing import Final

from cluster_gw.store.scripts import expand, script_files

CALL: Final = re.compile(r"\bp?call\(\s*['\"]([A-Z]+)['\"]")
DIRECT: Final = (
    *("ping", "role", "select", "client|setname", "script|load", "evalsha", "subscribe"),
    *("get", "getex", "set", "del", "hget", "hgetall", "hmget", "zrange", "scan", "pttl"),
)
"""What the client sends besides scripts."""
CLUSTER: Final = ("cluster|slots", "asking")
"""What it sends besides that to the nodes of a cluster."""
PUBLISH: Final = "publish"
LINE: Final = re.compile(r"(?m)^ACL SETUSER gateway reset on >password ~.*$")


def commands_of(folder: Path) -> list[str]:
    """Name every command that the scripts below `folder` call, in lower case and order."""
    texts = [expand(path, folder) for path in script_files(folder)]
    return sorted({name.lower() for text in texts for name in CALL.findall(text)})


def user_rule(folder: Path, *, prefix: str = "gw1", password: str = "password") -> list[str]:  # noqa: S107 - a stand-in
    """Give the words of the `ACL SETUSER` command that makes the user `gateway`.

    Args:
        folder: of the scripts.
        prefix: of the key names.
        password: of the user.
    """
    commands = [*dict.fromkeys((*DIRECT, *commands_of(folder)))]
    channels = [f"&{prefix}:*"] if PUBLISH in commands else []
    grants = [f"+{name}" for name in commands]
    places = [f"~{prefix}:*", *channels]
    return ["ACL", "SETUSER", "gateway", "reset", "on", f">{password}", *places, *grants]


def write_rights(folder: Path, page: Path) -> None:
    """Put the present rule into the page that documents it."""
    text = page.read_text(encoding="utf-8")
    rule = " ".join(user_rule(folder))
    page.write_text(LINE.sub(lambda _: rule, text), encoding="utf-8")
