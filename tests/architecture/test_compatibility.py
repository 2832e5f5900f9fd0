"""What docs/compatibility.md says of Anthropic's dialect is what its codecs do."""

from pathlib import Path

from cluster_gw.providers.anthropic_conversation import IMAGE_TYPES
from cluster_gw.providers.anthropic_facts import FINISH_REASONS
from cluster_gw.providers.anthropic_sampling import BUDGETS, MIN_BUDGET_TOKENS, WITHOUT
from cluster_gw.surfaces.messages_answer import MALFORMED, STOP_REASONS
from cluster_gw.surfaces.messages_conversation import LOW_TOKENS, MEDIUM_TOKENS, SILENT
from cluster_gw.wire.anthropic_messages import DEFAULT_MAX_TOKENS, FOREIGN

PAGE = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
SURFACE, PROVIDER = (
    PAGE.partition(f"\n## {title}")[2].partition("\n## ")[0]
    for title in ("`POST /v1/messages` over", "Another API over a provider of Anthropic's")
)
OBEYED = {"model", "models", "provider"}


def row(section: str, start: str) -> list[str]:
    """The cells of the row that begins so."""
    line = next(line for line in section.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def groups(cell: str) -> list[list[str]]:
    """The names of a cell, in groups that a middle dot parts."""
    return [[name.strip(" `") for name in part.split(",")] for part in cell.split("·")]


def test_stop_reasons_of_the_surface_are_those_of_the_page() -> None:
    given, told = row(SURFACE, "finish reason `stop`")

    words = [name for group in groups(given.removeprefix("finish reason")) for name in group]

    assert [STOP_REASONS[word] for word in words] == [name for [name] in groups(told)]
    assert set(STOP_REASONS) - set(words) == {"function_call"}


def test_finish_reasons_of_the_provider_are_those_of_the_page() -> None:
    given, told = (groups(cell) for cell in row(PROVIDER, "`end_turn`"))

    pairs = {word: name for group, [name] in zip(given, told, strict=True) for word in group}

    assert pairs == dict(FINISH_REASONS)


def test_what_is_lost_and_what_is_silent_stands_on_the_page() -> None:
    lost, _ = row(PROVIDER, "`seed`")
    silent, _ = row(SURFACE, "`cache_control`")

    assert groups(lost) == [[*WITHOUT, "logprobs"]]
    assert set(groups(silent)[0]) == SILENT - OBEYED


def test_figures_are_those_of_the_page() -> None:
    efforts, budgets = row(PROVIDER, "effort `none`")
    _, by_budget = row(SURFACE, "`thinking.budget_tokens`")
    forced, _ = row(PROVIDER, "effort beside")

    assert [name for [name] in groups(efforts)[1:]] == list(BUDGETS)
    assert [word for word in budgets.split() if word.isdigit()] == [
        str(tokens) for tokens in BUDGETS.values()
    ]
    assert f"`low` to {LOW_TOKENS}, `medium` to {MEDIUM_TOKENS}" in by_budget
    least = next(n for n in range(10_000) if n * 3 // 4 >= MIN_BUDGET_TOKENS)
    assert forced.endswith(f"below {least}")
    assert f"`max_tokens` is {DEFAULT_MAX_TOKENS} where" in PROVIDER
    assert f"marked\n`{FOREIGN}`" in SURFACE
    assert f"`{MALFORMED}`" in SURFACE
    assert {name.partition("/")[2] for name in IMAGE_TYPES} == {"jpeg", "png", "gif", "webp"}
