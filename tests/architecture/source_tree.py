"""What the architecture tests read: the files of the repository and their syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "build", "dist", "htmlcov"})
TEXT_SUFFIXES: Final = frozenset(
    {
        "", ".c", ".cfg", ".conf", ".css", ".h", ".html", ".in", ".js", ".json", ".jsonl", ".lock",
        ".lua", ".md", ".mjs", ".py", ".sh", ".sse", ".toml", ".tpl", ".ts",
        ".txt", ".yaml", ".yml",
    }
)  # fmt: skip

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def files(*roots: str, suffixes: frozenset[str]) -> list[Path]:
    """Files with one of `suffixes` under the named roots (a root may be a file); sorted.

    Hidden folders are left out, except `.ci`; so are build results and installed packages.
    """
    return sorted(path for root in roots for path in _walk(ROOT / root) if path.suffix in suffixes)


def _walk(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        return
    for child in path.iterdir():
        hidden = child.name.startswith(".") and child.name not in {".ci", ".gitignore"}
        if not hidden and child.name not in SKIPPED_FOLDERS and not child.is_symlink():
            yield from _walk(child)


def python_files(*roots: str) -> list[Path]:
    """Python files under the named roots."""
    return files(*roots, suffixes=frozenset({".py"}))


def text_files() -> list[Path]:
    """Every text file of the repository."""
    return files(".", suffixes=TEXT_SUFFIXES)


def relative(path: Path) -> str:
    """The path as a reader of the repository names it."""
    return path.relative_to(ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    """The syntax tree of one Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(tree: ast.Module) -> Iterator[FunctionNode]:
    """Every function and method of a module, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def make_targets() -> set[str]:
    """Targets the Makefile declares as commands (its `.PHONY` line)."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return {
        target
        for line in lines
        if line.startswith(".PHONY:")
        for target in line.removeprefix(".PHONY:").split()
    }
