"""The gate's checks, their order and their exemptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.outcome.gate import GATE_CODES, ApplyTo, GatePolicy, judge

STRICT = GatePolicy(
    reject_empty=True,
    require_terminal=True,
    min_content_length=5,
    forbidden_substrings=("", "Sorry"),
)


@pytest.mark.parametrize(
    ("text", "calls", "saw_terminal", "code"),
    [
        ("long enough", 0, True, None),
        ("long enough", 0, False, "gate.no_terminal"),
        ("", 3, False, "gate.no_terminal"),
        ("", 0, True, "gate.empty"),
        (" \n\t", 0, True, "gate.empty"),
        ("four", 0, True, "gate.too_short"),
        ("éé", 0, True, "gate.too_short"),
        ("ééé", 0, True, None),
        ("a    ", 0, True, None),
        ("", 1, True, None),
        ("four", 1, True, None),
        ("I am Sorry", 0, True, "gate.forbidden"),
        ("I am Sorry", 1, True, "gate.forbidden"),
        ("I am sorry", 0, True, None),
        ("Sor", 0, True, "gate.too_short"),
    ],
)
def test_the_first_failing_check_is_told(
    text: str, calls: int, saw_terminal: bool, code: str | None
) -> None:
    assert judge(STRICT, text=text, tool_call_count=calls, saw_terminal=saw_terminal) == code


@given(st.text(), st.integers(0, 3), st.booleans())
def test_the_default_accepts_everything(text: str, calls: int, saw_terminal: bool) -> None:
    assert judge(GatePolicy(), text=text, tool_call_count=calls, saw_terminal=saw_terminal) is None


@given(st.text(), st.integers(0, 3), st.booleans())
def test_codes_come_from_the_list(text: str, calls: int, saw_terminal: bool) -> None:
    code = judge(STRICT, text=text, tool_call_count=calls, saw_terminal=saw_terminal)

    assert code is None or code in GATE_CODES


def test_a_refusal_is_an_answer_even_without_a_word() -> None:
    policy = GatePolicy(reject_empty=True, min_content_length=5, require_terminal=True)

    def told(*, is_refused: bool, saw_terminal: bool = True) -> str | None:
        return judge(
            policy, text="", tool_call_count=0, saw_terminal=saw_terminal, is_refused=is_refused
        )

    assert told(is_refused=True) is None
    assert told(is_refused=False) is not None
    assert told(is_refused=True, saw_terminal=False) is not None


def test_a_lone_surrogate_is_measured_without_a_fault() -> None:
    policy = GatePolicy(min_content_length=4)

    assert judge(policy, text="\ud800", tool_call_count=0, saw_terminal=True) == "gate.too_short"


@pytest.mark.parametrize(
    ("apply_to", "stream", "applies"),
    [
        (ApplyTo.BOTH, True, True),
        (ApplyTo.BOTH, False, True),
        (ApplyTo.STREAM, True, True),
        (ApplyTo.STREAM, False, False),
        (ApplyTo.BUFFERED, True, False),
        (ApplyTo.BUFFERED, False, True),
    ],
)
def test_the_policy_says_where_it_applies(apply_to: ApplyTo, stream: bool, applies: bool) -> None:
    assert GatePolicy(apply_to=apply_to).applies(stream=stream) is applies
