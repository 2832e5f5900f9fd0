"""What docs/compatibility.md says of Gemini's dialect is what its codecs do."""

from cluster_gw.providers.gemini_contents import ERROR, NO_SYSTEM, RESULT
from cluster_gw.providers.gemini_conversation import BUDGETS, LEAST_BUDGETS, MAX_STOPS
from cluster_gw.providers.gemini_facts import FAILURES, FINISH_REASONS
from cluster_gw.providers.quirks import QUIRKS
from cluster_gw.surfaces.chat_answer import signature_json
from cluster_gw.surfaces.gemini_answer import FINISH_REASONS as WRITTEN_REASONS
from cluster_gw.surfaces.gemini_answer import MALFORMED
from cluster_gw.surfaces.gemini_conversation import EFFORTS, MOST_EFFORT
from tests.architecture.test_compatibility import PAGE, groups, row

SURFACE, PROVIDER = (
    PAGE.partition(f"\n## {title}")[2].partition("\n## ")[0]
    for title in ("Gemini's API over", "Another API over a provider of Gemini's")
)
WORDS_OF_NUMBERS = {5: "five"}


def test_finish_reasons_that_are_written_are_those_of_the_page() -> None:
    given, told = row(SURFACE, "finish reasons")

    pairs = {
        word: name
        for group, [name] in zip(
            groups(given.removeprefix("finish reasons")), groups(told), strict=True
        )
        for word in group
    }

    assert pairs == {word: name for word, name in WRITTEN_REASONS.items() if word in pairs}
    assert set(WRITTEN_REASONS) - set(pairs) == {"function_call"}
    assert f"`finishReason` is `{MALFORMED}`" in SURFACE


def test_finish_reasons_that_are_read_are_those_of_the_page() -> None:
    _, told = row(PROVIDER, "`MAX_TOKENS`")

    assert [group[0].split("`")[0] for group in groups(told)] == [
        FINISH_REASONS[word] for word in ("MAX_TOKENS", "SAFETY", "STOP")
    ]
    assert FINISH_REASONS["RECITATION"] == FINISH_REASONS["SAFETY"]
    assert MALFORMED in FAILURES
    assert row(PROVIDER, f"`{MALFORMED}`")


def test_figures_are_those_of_the_page() -> None:
    efforts, budgets = row(PROVIDER, "effort `none`")
    _, by_budget = row(SURFACE, "`thinkingBudget`")
    names = [name for group in groups(efforts.removeprefix("effort")) for name in group]

    assert names == [name for name, _ in BUDGETS]
    assert list(dict.fromkeys(str(tokens) for _, tokens in BUDGETS)) == [
        word.rstrip(";") for word in budgets.split(" tokens")[0].split() if word.isdigit()
    ]
    [(_, least)] = LEAST_BUDGETS
    assert f"at least {least} for Gemini 2.5 Pro" in budgets
    for most, effort in EFFORTS[1:]:
        assert f"`{effort}` to {most}" in by_budget
    assert f"`{MOST_EFFORT}` above" in by_budget
    assert f"first {WORDS_OF_NUMBERS[MAX_STOPS]}" in row(PROVIDER, "more than")[1]


def test_names_are_those_of_the_page() -> None:
    assert f"under `{RESULT}`, or `{ERROR}` where it failed" in PROVIDER
    assert {name.partition("-")[2] for name in NO_SYSTEM} == {"2", "3"}
    assert "Gemma 2 and 3" in PROVIDER
    assert "folded_system" in QUIRKS
    assert "`folded_system`" in PROVIDER
    signed = signature_json("s")
    assert set(signed) == {"gemini_thought_signature", "extra_content"}
    for name in ("gemini_thought_signature", "extra_content.google.thought_signature"):
        assert f"`{name}`" in PROVIDER
