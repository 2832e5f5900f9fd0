from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.server.minute_counts import MinuteCounts

STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 45)), max_size=40)


@given(steps=STEPS, apart=st.integers(1, 4))
def test_each_minute_begins_anew_and_memory_is_bounded(
    steps: list[tuple[str, int]], apart: int
) -> None:
    now_s, began_s = 0.0, 0.0
    counts = MinuteCounts(lambda: now_s, apart=apart)
    model: dict[str, int] = {}

    for name, step_s in steps:
        now_s += step_s
        if not model or now_s >= began_s + 60:
            model, began_s = {}, now_s
        place = name if name in model or len(model) < apart else "others"
        model[place] = model.get(place, 0) + 1

        assert counts.count(name) == (model[place], began_s + 60 - now_s)
        assert len(counts) <= apart + 1
