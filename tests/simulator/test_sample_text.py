from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.simulator.sample_text import expected_text, split_pieces


@given(st.text())
def test_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(split_pieces(text)) == text


@given(st.text(), st.integers(0, 200))
def test_generated_text_has_as_many_pieces_as_tokens(text: str, tokens: int) -> None:
    assert len(split_pieces(expected_text(text, tokens=tokens))) == tokens


def test_longer_answer_begins_like_the_shorter_one() -> None:
    assert expected_text("q", tokens=50).startswith(expected_text("q", tokens=49))


def test_answer_depends_on_text_seeds_and_choice() -> None:
    answers = {
        expected_text("q", tokens=16),
        expected_text("r", tokens=16),
        expected_text("q", tokens=16, seed=1),
        expected_text("q", tokens=16, request_seed=1),
        expected_text("q", tokens=16, choice=1),
    }
    assert len(answers) == 5
