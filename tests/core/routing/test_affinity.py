import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.affinity import fnv1a_64, rendezvous, rotation, seed, seeds

VECTORS = [
    # text, hash, then the place in a list of 2, 3, 4 and 5
    ("", 14695981039346656037, 1, 2, 1, 2),
    ("x", 12638214688346347271, 1, 2, 3, 1),
    ("hi", 628919584683901914, 0, 0, 2, 4),
    ("stable", 4567693929835203094, 0, 1, 2, 4),
    ("identical prompt prefix", 64000094140891318, 0, 1, 2, 3),
    ("you are kraminspect this repository", 18225982181120588083, 1, 1, 3, 3),
]
TEXTS = st.text(max_size=20)


@pytest.mark.parametrize(("text", "expected", "two", "three", "four", "five"), VECTORS)
def test_hash_and_rotation_are_those_of_the_first_generation(
    text: str, expected: int, two: int, three: int, four: int, five: int
) -> None:
    assert fnv1a_64(text) == expected
    assert [rotation(text, count) for count in (2, 3, 4, 5)] == [two, three, four, five]


@given(text=TEXTS, names=st.lists(TEXTS, min_size=1, max_size=8, unique=True))
def test_weights_depend_on_prompt_and_route_only(text: str, names: list[str]) -> None:
    whole = rendezvous(seeds(names), seed(text))
    alone = [rendezvous(seeds([name]), seed(text))[0] for name in names]

    assert whole.tolist() == alone


@given(text=TEXTS, names=st.lists(TEXTS, min_size=2, max_size=8, unique=True))
def test_prompt_moves_only_when_its_own_route_goes(text: str, names: list[str]) -> None:
    own = names[int(np.argmax(rendezvous(seeds(names), seed(text))))]

    for gone in names:
        left = [name for name in names if name != gone]
        after = left[int(np.argmax(rendezvous(seeds(left), seed(text))))]
        assert own in {gone, after}


def test_prompts_are_spread_evenly() -> None:
    routes = seeds([f"p/m{number}" for number in range(5)])

    owned = collections.Counter(
        int(np.argmax(rendezvous(routes, seed(f"prompt {number}")))) for number in range(10_000)
    )

    # A binomial of 10,000 and 0.2 deviates by 40; six times that does not happen.
    assert all(abs(count - 2000) < 240 for count in owned.values())
    assert len(owned) == 5
