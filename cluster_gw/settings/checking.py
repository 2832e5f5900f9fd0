"""Checks plain values against the types of `Settings` and reports every fault, not the first.

msgspec would stop at the first fault and show names of mappings as `[...]`. The result of a check
is plain data that msgspec converts without complaint; what was refused is left out of it, so that
later checks still see the rest.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import inspect

from cluster_gw.settings.amounts import is_finite, parse_amount, parse_label
from cluster_gw.settings.bounds import BOUNDS, LABELS, PATTERN_WORDS, TOKEN_FIELDS, Range
from cluster_gw.settings.expand import UNSET, Unset
from cluster_gw.settings.faults import ABSENT, Expanded, Faults, at_index, at_name
from cluster_gw.settings.secret import Secret

SecretReader = Callable[[str, str], Secret | Unset]

NO_SECRET: Final = Secret("")
"""Stands for a secret that was refused; it is never used, its fault is noted."""

_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


class Checker:
    """Walks a document along a type.

    Args:
        faults: where faults and warnings go.
        read_secret: resolves the text of a secret at a path.
    """

    def __init__(self, faults: Faults, read_secret: SecretReader) -> None:
        self._faults = faults
        self._read_secret = read_secret
        self.kept: dict[str, list[int]] = {}
        """Per list path: the original position of every item that was kept."""
        self.secrets: set[str] = set()
        """The paths of all secrets."""

    def check(self, value: Any, kind: inspect.Type, path: str) -> Any:
        """Give the checked value of the document, or `UNSET` when it was refused (with a fault)."""
        return self._check(value, kind, path, "", None)

    def check_field(
        self, value: Any, owner: inspect.StructType, field: inspect.Field, path: str
    ) -> Any:
        """Give the checked value of one field, or `UNSET`; fields of tokens take `15M`."""
        extra = BOUNDS.get(owner.cls, {}).get(field.name)
        if (owner.cls, field.name) in LABELS and isinstance(value, str) and value:
            value = self._label(value, path)
        return self._check(value, field.type, path, field.name, extra)

    def _label(self, text: str, path: str) -> int | None:
        """What a vendor's words promise; whoever wrote them learns that they promise nothing."""
        amount = parse_amount(text)
        amount = parse_label(text) if amount is None else amount
        if amount is None:
            self._faults.warn(path, "tells no tokens a month, such as 15M or ~50-100M; not counted")
        return amount

    def _check(
        self, value: Any, kind: inspect.Type, path: str, field: str, extra: Range | None
    ) -> Any:
        if isinstance(value, Unset):
            return UNSET
        match kind:
            case inspect.UnionType():
                return self._union(value, kind, path, field, extra)
            case inspect.StructType() | inspect.DictType():
                return self._mapping(value, kind, path)
            case inspect.VarTupleType():
                return self._list(value, kind, path, field)
            case inspect.IntType() | inspect.FloatType():
                return self._number(value, kind, path, field, extra)
            case _:
                return self._scalar(value, kind, path)

    def _mapping(self, value: Any, kind: inspect.StructType | inspect.DictType, path: str) -> Any:
        if not isinstance(value, dict):
            return self._refuse(path, "a mapping", value)
        if isinstance(kind, inspect.StructType):
            return self._struct(value, kind, path)
        return self._dict(value, kind, path)

    def _scalar(self, value: Any, kind: inspect.Type, path: str) -> Any:
        match kind:
            case inspect.BoolType():
                return self._bool(value, path)
            case inspect.StrType():
                return self._str(value, kind, path)
            case inspect.LiteralType():
                return self._choice(value, [str(v) for v in kind.values], path)
            case inspect.EnumType():
                return self._choice(value, [str(v) for v in kind.cls], path)
            case inspect.CustomType():
                return self._secret(value, path)
            case _:
                raise TypeError(f"{path}: a setting has a type the checker does not know")

    def _union(
        self, value: Any, kind: inspect.UnionType, path: str, field: str, extra: Range | None
    ) -> Any:
        arms = [arm for arm in kind.types if not isinstance(arm, inspect.NoneType)]
        if len(arms) < len(kind.types) and _is_nothing(value):
            return None
        fitting = [arm for arm in arms if _fits(value, arm)]
        if len(arms) > 1 and not fitting:
            return self._refuse(path, " or ".join(_words(arm) for arm in arms), value)
        # The text of a variable that is a number is one, wherever a number is allowed.
        arm = min(fitting or arms, key=lambda one: isinstance(one, inspect.LiteralType))
        return self._check(value, arm, path, field, extra)

    def _struct(self, value: dict[str, Any], kind: inspect.StructType, path: str) -> Any:
        fields = {field.name: field for field in kind.fields}
        for name in value:
            if name not in fields:
                message = self._faults.unknown(name, list(fields))
                self._faults.add(
                    at_name(path, name), message.replace("unknown", "unknown field", 1)
                )
        result: dict[str, Any] = {}
        for name, field in fields.items():
            place = at_name(path, name)
            if name in value:
                checked = self.check_field(value[name], kind, field, place)
                if not isinstance(checked, Unset):
                    result[name] = checked
            elif field.required:
                self._faults.add(place, "is missing")
            if name not in result and field.required:
                result[name] = _stand_in(field.type)
        return UNSET if UNSET in result.values() else result

    def _list(self, value: Any, kind: inspect.VarTupleType, path: str, field: str) -> Any:
        if not isinstance(value, list):
            return self._refuse(path, "a list", value)
        if kind.max_length is not None and len(value) > kind.max_length:
            self._faults.add(path, f"must have at most {kind.max_length} entries")
            return UNSET
        checked = [
            self._check(item, kind.item_type, at_index(path, i), field, None)
            for i, item in enumerate(value)
        ]
        self.kept[path] = [i for i, item in enumerate(checked) if not isinstance(item, Unset)]
        return [item for item in checked if not isinstance(item, Unset)]

    def _dict(self, value: dict[str, Any], kind: inspect.DictType, path: str) -> Any:
        result: dict[str, Any] = {}
        for name, item in value.items():
            place = at_name(path, name)
            key = self._check(name, kind.key_type, place, "", None)
            checked = self._check(item, kind.value_type, place, "", None)
            if not isinstance(checked, Unset) and not isinstance(key, Unset):
                result[name] = checked
        return result

    def _number(
        self,
        value: Any,
        kind: inspect.IntType | inspect.FloatType,
        path: str,
        field: str,
        extra: Range | None,
    ) -> Any:
        whole = isinstance(kind, inspect.IntType)
        bounds = extra or range_of(kind)
        in_tokens = field in TOKEN_FIELDS
        hidden = isinstance(value, Expanded)
        if isinstance(value, str) and (in_tokens or hidden):
            value = _number_of(value, whole=whole, in_tokens=in_tokens)
        expected = f"{'a whole number' if whole else 'a number'}{bounds.words()}"
        if in_tokens:
            expected += " such as 150000, 150k, 15M or 1.5B"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            return self._refuse(path, expected, value, is_numeric=not hidden)
        if not is_finite(value) or not bounds.holds(value):
            return self._refuse(path, expected, value, is_numeric=not hidden)
        return value if whole else float(value)

    def _bool(self, value: Any, path: str) -> Any:
        if isinstance(value, Expanded) and value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        return value if isinstance(value, bool) else self._refuse(path, "true or false", value)

    def _str(self, value: Any, kind: inspect.StrType, path: str) -> Any:
        if not isinstance(value, str):
            return self._refuse(path, "text", value)
        if "\0" in value or not is_unicode(value):
            problem = "must not hold a NUL character" if "\0" in value else "must be text in UTF-8"
            self._faults.add(path, problem)
            return UNSET
        if kind.pattern is not None and not re.fullmatch(kind.pattern, value):
            self._faults.add(path, PATTERN_WORDS.get(kind.pattern, "is not well formed"))
            return UNSET
        if len(value) < (kind.min_length or 0):
            self._faults.add(path, "must not be empty")
            return UNSET
        if kind.max_length is not None and len(value) > kind.max_length:
            self._faults.add(path, f"must have at most {kind.max_length} characters")
            return UNSET
        return value

    def _choice(self, value: Any, names: Sequence[str], path: str) -> Any:
        if not isinstance(value, str):
            return self._refuse(path, _one_of(names), value)
        if value not in names:
            self._faults.add(path, self._faults.unknown(value, names))
            return UNSET
        return str(value)

    def _secret(self, value: Any, path: str) -> Secret | Unset:
        if not isinstance(value, str):
            self._refuse(path, "text such as env:NAME or file:/path", value)
            return UNSET
        self.secrets.add(path)
        return self._read_secret(value, path)

    def _refuse(self, path: str, expected: str, value: Any, *, is_numeric: bool = False) -> Unset:
        got = _got_instead_of_a_number(value) if is_numeric else _got(value)
        self._faults.add(path, f"expected {expected}, got {got}")
        return UNSET


def _stand_in(kind: inspect.Type) -> Any:
    """Give what keeps an item whole whose required value was refused; else `UNSET`."""
    match kind:
        case inspect.StrType():
            return ABSENT
        case inspect.CustomType():
            return NO_SECRET
        case _:
            return UNSET


def _number_of(text: str, *, whole: bool, in_tokens: bool) -> int | float | str:
    if in_tokens:
        amount = parse_amount(text)
        return text if amount is None else amount
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return text


def range_of(kind: inspect.IntType | inspect.FloatType) -> Range:
    """Give the bounds a type carries in its annotation."""
    low = kind.ge if kind.ge is not None else kind.gt
    high = kind.le if kind.le is not None else kind.lt
    return Range(
        low, high, above=kind.ge is None and kind.gt is not None, below=kind.lt is not None
    )


def _is_nothing(value: Any) -> bool:
    """Whether a value says that there is none: null, or a variable that is empty."""
    return value is None or (isinstance(value, Expanded) and not value)


def _fits(value: Any, kind: inspect.Type) -> bool:
    """Whether a value has the shape of one arm of a union."""
    match kind:
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.VarTupleType():
            return isinstance(value, list)
        case inspect.StrType() | inspect.LiteralType() | inspect.EnumType() | inspect.CustomType():
            return isinstance(value, str)
        case inspect.IntType() | inspect.FloatType():
            is_text = isinstance(value, Expanded)
            return isinstance(value, (int, float)) or (is_text and parse_amount(value) is not None)
        case _:
            return not isinstance(value, (dict, list))


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.StructType() | inspect.DictType():
            return "a mapping"
        case inspect.VarTupleType():
            return "a list"
        case inspect.IntType() | inspect.FloatType():
            return f"a number{range_of(kind).words()}"
        case inspect.LiteralType():
            return _one_of([str(v) for v in kind.values])
        case _:
            return "text"


def is_unicode(text: str) -> bool:
    """Whether a text can be written; a byte of the environment that is no UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _one_of(names: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return listed if len(names) == 1 else f"one of {listed}"


def _got_instead_of_a_number(value: Any) -> str:
    """Describe a wrong value where a number belongs; only there a number is repeated."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if is_finite(value):
            return f"{value:.12g}"
        return (
            f"a number {'of too many digits' if isinstance(value, int) else 'that is not finite'}"
        )
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value, re.ASCII):
        return "a number in quotes"
    if isinstance(value, str) and parse_amount(value) is not None:
        return "a number with a unit, which only counts of tokens take"
    return _got(value)


def _got(value: Any) -> str:
    """Describe a wrong value without repeating it: it may be a misplaced secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "nothing"
