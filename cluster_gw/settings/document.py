"""Text of a configuration file becomes plain values; nothing here knows what they mean.

YAML 1.2 with the safe schema and less: no tags, dates, merge keys, duplicate keys or several
documents, bounded in size, depth and alias expansion. JSON is the same language with other spaces.
"""

import re
from types import MappingProxyType
from typing import Any, Final

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from cluster_gw.settings.faults import Faults, at_index, at_name

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_NODES: Final = 200_000  # aliases count as often as they are used
MAX_DEPTH: Final = 32
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"

_QUOTED: Final = re.compile(r" ?(?:'[^']{2,}'|\"[^\"]{2,}\")")
_TAG: Final = "tag:yaml.org,2002:"
_REFUSED: Final = MappingProxyType(
    {
        "timestamp": "dates are not supported; put it in quotes",
        "merge": "merge keys (<<) are not supported",
        "binary": "binary values are not supported",
    }
)


def read_document(data: bytes, faults: Faults) -> dict[str, Any]:
    """Give the mapping a file holds; an empty file is an empty mapping.

    Args:
        data: the file's bytes.
        faults: what is wrong with it is added here; the result is then only what could be read.
    """
    if len(data) > MAX_BYTES:
        faults.add("", f"the file is larger than {MAX_BYTES // 1024 // 1024} MB")
        return {}
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        faults.add("", "the file is not UTF-8 text")
        return {}
    node = _compose(_spaced(text), faults)
    if node is None:
        return {}
    if not isinstance(node, MappingNode):
        faults.add("", "the file must hold a mapping of sections")
        return {}
    value: dict[str, Any] = _Builder(faults).mapping(node, "", 0)
    return value


def _spaced(text: str) -> str:
    """Indent JSON with spaces: YAML takes no tabs there. Duplicate members survive the rewrite."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):  # reading it as YAML tells what is wrong
        return text


def _compose(text: str, faults: Faults) -> Node | None:
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        # Never the error's own text: it quotes the line, which may hold a secret; even the short
        # description names an alias or a tag, as which a secret that begins with * or ! is read.
        where = error.problem_mark or error.context_mark
        place = f"line {where.line + 1}, column {where.column + 1}: " if where else ""
        problem = _QUOTED.sub("", str(error.problem or error.context))
        faults.add("", f"{place}not valid YAML: {problem}")
        return None
    except YAMLError:
        faults.add("", "not valid YAML: a character is not allowed")
        return None
    except RecursionError:
        faults.add("", TOO_DEEP)
        return None
    except ValueError:
        faults.add("", "not valid YAML: an impossible value")
        return None
    return node


class _Builder:
    """Turns composed nodes into values and counts what it builds."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._nodes = 0

    def value(self, node: Node, path: str, depth: int) -> Any:
        """Give the value of `node`; None stands where something was refused."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._faults.add_once("", f"the file expands to more than {MAX_NODES} values")
            return None
        if depth > MAX_DEPTH:
            self._faults.add_once("", TOO_DEEP)
            return None
        if isinstance(node, MappingNode) and _kind(node) == "map":
            return self.mapping(node, path, depth)
        if isinstance(node, SequenceNode) and _kind(node) == "seq":
            return [
                self.value(item, at_index(path, i), depth + 1) for i, item in enumerate(node.value)
            ]
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        self._faults.add(path, "tags are not supported")
        return None

    def mapping(self, node: MappingNode, path: str, depth: int) -> dict[str, Any]:
        """Give a mapping; a name that stands twice is a fault and keeps its first value."""
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = self._name(key_node, path)
            if name is None:
                continue
            if name in result:
                self._faults.add(at_name(path, name), "stands twice in the same mapping")
                continue
            result[name] = self.value(value_node, at_name(path, name), depth + 1)
        return result

    def _name(self, node: Node, path: str) -> str | None:
        kind = _kind(node)
        if kind in _REFUSED:
            self._faults.add(path, _REFUSED[kind])
            return None
        if not isinstance(node, ScalarNode) or kind not in {"str", "int", "float", "bool", "null"}:
            self._faults.add(path, "a name must be text")
            return None
        return str(node.value)

    def _scalar(self, node: ScalarNode, path: str) -> Any:
        text: str = node.value
        match _kind(node):
            case "str":
                return self._text(text, path)
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return self._number(text, path, whole=True)
            case "float":
                return self._number(text, path, whole=False)
            case kind:
                self._faults.add(path, _REFUSED.get(kind, "tags are not supported"))
                return None

    def _number(self, text: str, path: str, *, whole: bool) -> int | float | None:
        plain = text.replace("_", "").lower()
        try:
            if not whole:
                return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
            return int(plain, 0 if plain.lstrip("+-")[:2] in {"0x", "0o"} else 10)
        except ValueError:
            self._faults.add(path, "not a number")
            return None

    def _text(self, text: str, path: str) -> str:
        try:
            # JSON writes characters above U+FFFF as two halves; YAML leaves them apart.
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._faults.add(path, "half of a character pair (a lone surrogate)")
            return ""


def _kind(node: Node) -> str:
    return str(node.tag).removeprefix(_TAG)
