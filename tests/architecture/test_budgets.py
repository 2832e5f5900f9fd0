"""Nothing grows past the size at which it should be split by noun."""

import ast

from tests.architecture.source_tree import ROOT, files, functions, parse, python_files, relative

MODULE_LINES = 400
TEST_LINES = 500
SCRIPT_LINES = 150
INCLUDE_LINES = 60
STATEMENTS = 40
PARAMETERS = 7
DECISION_LINES = 60
CONTRIBUTING_LINES = 120


def lines_of(text: str) -> int:
    return len(text.splitlines())


def over(roots: tuple[str, ...], suffix: str, budget: int) -> list[str]:
    """`path: lines` of every file above the budget."""
    return [
        f"{relative(path)}: {count}"
        for path in files(*roots, suffixes=frozenset({suffix}))
        if (count := lines_of(path.read_text(encoding="utf-8"))) > budget
    ]


def test_no_module_is_longer_than_its_budget() -> None:
    assert over(("cluster_gw", "bench"), ".py", MODULE_LINES) == []


def test_no_test_file_is_longer_than_its_budget() -> None:
    assert over(("tests",), ".py", TEST_LINES) == []


def test_no_script_is_longer_than_its_budget() -> None:
    assert over(("lua",), ".lua", SCRIPT_LINES) == []


def test_no_included_script_part_is_longer_than_its_budget() -> None:
    assert over(("lua/lib",), ".lua", INCLUDE_LINES) == []


def test_no_function_has_more_statements_than_its_budget() -> None:
    found = []
    for path in python_files("cluster_gw", "tests", "bench"):
        for function in functions(parse(path)):
            count = sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1
            if count > STATEMENTS:
                found.append(f"{relative(path)}:{function.lineno} {function.name}: {count}")

    assert found == []


def test_no_function_takes_more_parameters_than_its_budget() -> None:
    found = []
    for path in python_files("cluster_gw"):
        for function in functions(parse(path)):
            given = function.args
            names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = len([name for name in names if name not in {"self", "cls"}])
            if count > PARAMETERS:
                found.append(f"{relative(path)}:{function.lineno} {function.name}: {count}")

    assert found == []


def test_decisions_and_contributing_stay_short() -> None:
    long = [one for one in over(("docs/decisions",), ".md", DECISION_LINES) if "README" not in one]
    contributing = lines_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))

    assert long == []
    assert contributing < CONTRIBUTING_LINES
