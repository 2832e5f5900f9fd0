from cluster_gw.core.outcome.classify import SkipScope
from cluster_gw.core.routing.catalog import Key
from cluster_gw.pipeline.backlog import Backlog
from cluster_gw.pipeline.targets import Target
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.store.admission import TargetLimits
from tests.pipeline.catalogs import make_key, make_route


def make_target(model: str, provider: str, key: Key) -> Target:
    route = make_route(model, provider=provider, keys=(key,))
    return Target(
        route=route,
        key=key,
        limits=TargetLimits(
            provider=provider,
            account=key.account,
            key=key.id,
            model=model,
            day_reset=route.day_reset,
            model_limits=route.limits,
            key_limits=key.limits,
        ),
        codec=OpenAIChatProvider(frozenset()),
        url="",
        headers=(),
        secret="do-not-show",
        check_url=None,
        via=b"",
    )


K1, K2 = make_key("k1"), make_key("k2")
A1, A2, B1 = make_target("a", "p", K1), make_target("a", "p", K2), make_target("b", "p", K1)
C3 = make_target("c", "q", make_key("k3", "q"))


def rest(backlog: Backlog) -> list[Target]:
    taken = []
    while (target := backlog.take()) is not None:
        taken.append(target)
    return taken


def test_targets_come_in_the_order_of_the_ranking() -> None:
    assert rest(Backlog([A1, A2, B1, C3])) == [A1, A2, B1, C3]


def test_a_sick_provider_is_tried_only_when_nothing_else_is_left() -> None:
    backlog = Backlog([A2, B1, C3])

    backlog.skip(A1, SkipScope.PROVIDER)

    assert rest(backlog) == [C3, A2, B1]


def test_a_missing_model_strikes_out_its_other_keys_and_nothing_else() -> None:
    backlog = Backlog([A2, B1, C3])

    backlog.skip(A1, SkipScope.MODEL)

    assert rest(backlog) == [B1, C3]


def test_a_dead_key_strikes_out_every_model_of_that_key() -> None:
    backlog = Backlog([A2, B1, C3])

    backlog.skip(A1, SkipScope.KEY)

    assert rest(backlog) == [A2, C3]


def test_a_target_never_shows_its_secret() -> None:
    assert "do-not-show" not in repr(A1)
