"""What the documents say is true of the tree beside them, and they speak of the product alone."""

import ast
import re
import tomllib
from pathlib import Path

import cluster_gw
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.core.outcome.trace import SkipCode
from tests.architecture.source_tree import (
    ROOT,
    make_targets,
    parse,
    python_files,
    relative,
    text_files,
)

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:\.ci|bench|cluster_gw|docs|helm|lua|requirements|tests)/[\w./-]*")
MAKE = re.compile(r"(?m)(?:^|`)make ([a-z][a-z-]*)\b")
ROUTE = re.compile(r"/(?:v1|v1beta|api|livez|readyz|metrics|ui|health)(?:/[\w{}:./-]*)?")

FOREIGN = re.compile(
    "|".join(
        (
            r"/ro" + r"ot/", r"/wo" + r"rk/", r"/ho" + r"me/[a-z]", r"/Us" + r"ers/",
            r"py" + r"pi\.org", r"python" + r"hosted", r"npm" + r"js\.org", r"index-" + r"url",
            r"proxy\.go" + r"lang", r"\"resol" + r"ved\": \"http",
        )
    )
)  # fmt: skip


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose_and_code(text: str) -> list[str]:
    """Inline code of a document, without its fenced blocks."""
    return CODE.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def declared_routes() -> set[str]:
    """Paths that the data plane and the operations plane spell out as whole strings."""
    return {
        node.value
        for path in python_files("cluster_gw/server", "cluster_gw/supervisor", "cluster_gw/app")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and ROUTE.fullmatch(node.value)
    }


def unnamed(text: str) -> str:
    """`/models/{id}` and `/models/{model:path}` are the same path."""
    return re.sub(r"\{[a-z_]+(?::[a-z]+)?\}", "{}", text)


def errors_built_in_place() -> set[tuple[int, str]]:
    """Status and code of every error object the product spells out where it is answered."""
    calls = [
        {word.arg: word.value for word in node.keywords}
        for path in python_files("cluster_gw")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ErrorBody")
    ]
    return {
        (ast.literal_eval(call["status"]), ast.literal_eval(call["code"]))
        for call in calls
        if isinstance(call.get("status"), ast.Constant)
        and isinstance(call.get("code"), ast.Constant)
    }


def test_version_is_the_same_everywhere() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    newest = re.search(r"(?m)^## \[?(\d+\.\d+\.\d+)", read("CHANGELOG.md"))

    assert newest is not None
    assert project == cluster_gw.__version__ == newest.group(1)


def test_linked_files_exist() -> None:
    documents = {*DOCUMENTS, *(relative(path) for path in (ROOT / "docs").rglob("*.md"))}
    missing = [
        f"{name}: {target}"
        for name in sorted(documents)
        for target in LINK.findall(read(name))
        if "://" not in target and not (ROOT / name).parent.joinpath(target).exists()
    ]

    assert missing == []


def test_named_paths_exist() -> None:
    missing = [
        f"{name}: {found}"
        for name in DOCUMENTS
        for code in prose_and_code(read(name))
        if "<" not in code and "*" not in code
        for found in PATH.findall(code)
        if not (ROOT / found).exists()
    ]

    assert missing == []


def test_make_commands_of_the_documents_exist() -> None:
    targets = make_targets()
    named = {(name, target) for name in DOCUMENTS for target in MAKE.findall(read(name))}

    assert [pair for pair in sorted(named) if pair[1] not in targets] == []
    assert {"run", "test"} <= {target for name, target in named if name == "README.md"}


def test_every_make_command_explains_itself() -> None:
    explained = set(re.findall(r"(?m)^([a-z-]+):[^#\n]*## \S", read("Makefile")))

    assert make_targets() == explained


def test_ci_runs_the_command_of_the_readme() -> None:
    commands = [line.strip() for line in read(".ci/run").splitlines() if "make" in line.split()]

    assert commands[-1] == "exec make test"
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_every_route_is_documented() -> None:
    text = unnamed("".join(map(read, ("README.md", "docs/architecture.md", "docs/admin.md"))))
    routes = {unnamed(route).rstrip("/") for route in declared_routes()}

    assert [route for route in sorted(routes) if route not in text] == []


def test_every_error_code_is_documented_with_its_status() -> None:
    rows = re.findall(r"(?m)^\| (\d{3}) \| `([a-z_]+)` \|", read("docs/errors.md"))

    documented = sorted((int(status), code) for status, code in rows)
    assert documented == sorted((entry.status, code) for code, entry in ERROR_CODES.items())


def test_every_error_that_is_answered_is_declared() -> None:
    declared = {(entry.status, code) for code, entry in ERROR_CODES.items()}

    assert sorted(errors_built_in_place() - declared) == []


def test_every_code_of_an_attempt_is_documented() -> None:
    text = read("docs/errors.md").partition("## Words in `attempts`")[2].partition("\n## ")[0]
    words = re.findall(r"(?m)^\| `([a-z_]+)` \|", text)

    assert sorted(words) == sorted(code.value for code in FailureCode)


def test_every_gate_that_may_skip_a_candidate_is_documented() -> None:
    text = read("docs/errors.md").partition("## Words in `skipped`")[2]
    rows = re.findall(r"(?m)^\| (`[a-z_`, ]+`) \|", text)
    words = {word for row in rows for word in re.findall(r"[a-z_]+", row)}

    assert {gate.value for gate in Gate} <= words <= {code.value for code in SkipCode}


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    names = [re.split(r"[<>=; ]", line, maxsplit=1)[0] for line in project["dependencies"]]
    reasons = read("docs/decisions/0016-dependencies.md")

    assert [name for name in names if f"| {name} |" not in reasons] == []


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    names = [re.split(r"[<>=; ]", line, maxsplit=1)[0] for line in project["dependencies"]]
    for lock in ("requirements/run.lock", "requirements/image.lock", "requirements/dev.lock"):
        locked = set(re.findall(r"(?m)^([a-z0-9-]+)==", read(lock)))
        assert {name.replace(".", "-") for name in names} <= locked


def test_the_image_holds_the_versions_that_are_tested() -> None:
    tested, held = (
        dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", read(f"requirements/{name}.lock")))
        for name in ("dev", "image")
    )
    extra = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]["otel"]

    assert held.items() <= tested.items()
    assert {re.split(r"[<>=]", line, maxsplit=1)[0] for line in extra} <= held.keys()


def test_each_decision_has_a_number_of_its_own_and_is_listed_once_in_order() -> None:
    names = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))
    titles = [read(f"docs/decisions/{name}").partition("\n")[0][:7] for name in names]
    index = read("docs/decisions/README.md")

    # Gaps are numbers that are being worked on, or were not needed.
    numbers = [name[:4] for name in names]
    assert len(set(numbers)) == len(numbers)
    assert titles == [f"# {number} " for number in numbers]
    assert re.findall(r"(?m)^\| \[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\) \|", index) == [
        (name[:4], name) for name in names
    ]
    assert len(re.findall(r"\d{4}-[a-z0-9-]+\.md", index)) == len(names)


def test_every_decision_says_what_would_reverse_it() -> None:
    headings = ("## Context", "## Decision", "## Alternatives", "## Consequences", "## Reversal")
    lacking = [
        f"{path.name}: {heading}"
        for path in sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
        for heading in headings
        if heading not in path.read_text(encoding="utf-8")
    ]

    assert lacking == []


def test_decisions_cited_in_the_source_exist() -> None:
    numbers = {path.name[:4] for path in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    cited = {
        (relative(path), number)
        for path in python_files("cluster_gw")
        for number in re.findall(r"decision (\d{4})", path.read_text(encoding="utf-8"))
    }

    assert [pair for pair in sorted(cited) if pair[1] not in numbers] == []


def test_repository_speaks_of_the_product_alone() -> None:
    found = [
        f"{relative(path)}:{number}: {match.group()}"
        for path in text_files()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if (match := FOREIGN.search(line))
    ]

    assert found == []


def test_source_files_are_plain_text_with_a_final_line_end() -> None:
    wrong = [
        relative(path)
        for path in text_files()
        if path.suffix in {".py", ".lua", ".md", ".toml", ".yaml"}
        and (raw := path.read_bytes())
        and (not raw.endswith(b"\n") or b"\r" in raw or b"\t" in raw)
    ]

    assert wrong == []


def test_documents_are_where_the_readme_says() -> None:
    assert [name for name in DOCUMENTS if not Path(ROOT, name).is_file()] == []
