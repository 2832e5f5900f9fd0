"""House rules that the linter does not know: names, docstrings, stubs, module state."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source_tree import (
    FunctionNode,
    files,
    functions,
    parse,
    python_files,
    relative,
)

PRODUCT = ("cluster_gw",)
EVERYTHING = ("cluster_gw", "tests", "bench")

VAGUE = frozenset(
    {"util", "utils", "helper", "helpers", "manager", "handler", "handlers", "common", "misc", "v2"}
)  # a name that says nothing about the job; the rule for new code is a noun
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|NotImplemented" + r"Error)\b")
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+")

MUTABLE_CALLS = frozenset(
    {
        "list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict",
        "count", "Lock", "Semaphore", "Condition", "Queue", "ContextVar", "local",
        "asyncio.Event", "threading.Event", "WeakKeyDictionary", "WeakValueDictionary",
        "CollectorRegistry",
    }
)  # fmt: skip
MUTABLE_LITERALS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
READ_ONLY = re.compile(r"\b(Mapping|Sequence|Collection|Set|Iterable|frozenset|tuple)\b")


def words_of(name: str) -> set[str]:
    return {word.lower() for word in WORDS.findall(name)}


def named_things(path: Path) -> Iterator[str]:
    """Names a reader meets first: the file, its folders, its classes and functions."""
    yield from Path(relative(path)).with_suffix("").parts
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def is_stub(function: FunctionNode) -> bool:
    """Whether a function only has a docstring, `pass` or `...` where its work should be."""
    return all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


def bodyless_allowed(tree: ast.Module) -> set[int]:
    """Lines of functions that rightly have no body: interfaces, overloads, command groups."""
    allowed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in node.bases):
            allowed |= {child.lineno for child in node.body if hasattr(child, "lineno")}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
            if any(mark in marks for mark in ("overload", "abstract", ".group")):
                allowed.add(node.lineno)
    return allowed


def is_mutable(value: ast.expr) -> bool:
    """Whether an expression makes something that can change afterwards."""
    if isinstance(value, MUTABLE_LITERALS):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = ast.unparse(value.func)
    return name in MUTABLE_CALLS or name.rsplit(".", 1)[-1] in MUTABLE_CALLS


def module_state(tree: ast.Module) -> Iterator[int]:
    """Lines of module-level names that hold changeable values without a read-only type."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not node.value:
            continue
        exempt = (
            READ_ONLY.search(ast.unparse(node.annotation)) is not None
            if isinstance(node, ast.AnnAssign)
            else [ast.unparse(target) for target in node.targets] == ["__all__"]
        )
        if is_mutable(node.value) and not exempt:
            yield node.lineno


def test_names_say_what_the_thing_is() -> None:
    found = [
        f"{relative(path)}: {name}"
        for path in python_files(*EVERYTHING)
        for name in named_things(path)
        if words_of(name) & VAGUE
    ]

    assert found == []


def test_nothing_is_left_unfinished() -> None:
    sources = files(*EVERYTHING, "lua", "docs", suffixes=frozenset({".py", ".lua", ".md"}))
    found = [
        f"{relative(path)}:{number}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNFINISHED.search(line)
    ]

    assert found == []


def test_no_function_is_an_empty_stub() -> None:
    found = []
    for path in python_files(*PRODUCT):
        tree = parse(path)
        allowed = bodyless_allowed(tree)
        found += [
            f"{relative(path)}:{function.lineno} {function.name}"
            for function in functions(tree)
            if is_stub(function) and function.lineno not in allowed
        ]

    assert found == []


def test_every_module_tells_its_job() -> None:
    silent = [
        relative(path)
        for path in python_files("cluster_gw", "bench")
        if not ast.get_docstring(parse(path))
    ]

    assert silent == []


def test_no_module_holds_state() -> None:
    found = [
        f"{relative(path)}:{line}"
        for path in python_files(*PRODUCT)
        for line in module_state(parse(path))
    ]

    assert found == []


def test_no_function_changes_a_global() -> None:
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files(*PRODUCT)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Global)
    ]

    assert found == []


def test_imports_stand_at_the_top_of_a_module() -> None:
    found = [
        f"{relative(path)}:{node.lineno} in {function.name}"
        for path in python_files(*PRODUCT)
        for function in functions(parse(path))
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert found == []


def test_the_rules_recognise_what_they_forbid() -> None:
    tree = ast.parse("A = {}\nB: dict[str, int] = dict()\nC: Mapping[str, int] = {}\nD = (1,)")
    empty = ast.parse("def f(): ...\ndef g():\n    'Says.'\n    return 1")

    assert list(module_state(tree)) == [1, 2]
    assert [is_stub(function) for function in functions(empty)] == [True, False]
    assert words_of("HTTPHandler") & VAGUE
    assert words_of("key_helpers") & VAGUE
    assert words_of("gateway_v2") & VAGUE
    assert not words_of("handle_exit") & VAGUE
    assert UNFINISHED.search("# TO" + "DO: later")
