"""An answer with too few vectors, or with vectors of another length, is none."""

import pytest

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingModel
from cluster_gw.core.outcome.vectors import find_flaw

EIGHT = EmbeddingModel(family="f", dimensions=8)


@pytest.mark.parametrize(
    ("asked", "model", "lengths", "flaw"),
    [
        (EmbeddingAsk(count=2), None, [3, 3], None),
        (EmbeddingAsk(count=2), EIGHT, [8, 8], None),
        (EmbeddingAsk(count=1, dimensions=4), EIGHT, [4], None),
        (EmbeddingAsk(count=2), None, [3], "1 vectors for 2 inputs"),
        (EmbeddingAsk(count=1), None, [3, 3], "2 vectors for 1 inputs"),
        (EmbeddingAsk(count=1), None, [], "0 vectors for 1 inputs"),
        (EmbeddingAsk(count=2), None, [3, 4], "vector 1 has 4 dimensions instead of 3"),
        (EmbeddingAsk(count=1), EIGHT, [4], "vector 0 has 4 dimensions instead of 8"),
        (EmbeddingAsk(count=1, dimensions=4), EIGHT, [8], "vector 0 has 8 dimensions instead of 4"),
        (EmbeddingAsk(count=2), EIGHT, [8, None], "vector 1 is no array of numbers"),
        (EmbeddingAsk(count=1), None, [None], "vector 0 is no array of numbers"),
    ],
)
def test_each_flaw_is_told(
    asked: EmbeddingAsk, model: EmbeddingModel | None, lengths: list[int | None], flaw: str | None
) -> None:
    assert find_flaw(asked, model, lengths) == flaw
