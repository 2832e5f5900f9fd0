from cluster_gw.background.loss_watch import LossWatch


async def test_growth_is_told_once_and_by_how_much() -> None:
    counts = iter([0, 3, 3, 5])
    told: list[int] = []
    watch = LossWatch(lambda: next(counts), told.append)

    for _ in range(4):
        await watch.look()

    assert told == [3, 2]
