"""The listing of models."""

import pytest
from openai import NotFoundError

from tests.sdk.calls import Client, awaited, complete, listed
from tests.sdk.pool import NARROW_KEY

pytestmark = pytest.mark.sdk


async def names(client: Client) -> list[str]:
    return [model.id for model in await listed(await awaited(client.models.list()))]


async def test_listing_holds_combos_and_routes(client: Client) -> None:
    assert {"auto", "mirror", "alpha/one", "beta/two"} <= set(await names(client))


async def test_listing_shows_a_client_only_what_it_may_use(client: Client) -> None:
    narrow = client.with_options(api_key=NARROW_KEY)

    assert await names(narrow) == ["auto", "alpha/one", "beta/two"]


async def test_every_listed_model_of_a_client_can_be_shown_and_asked(client: Client) -> None:
    narrow = client.with_options(api_key=NARROW_KEY)

    for name in await names(narrow):
        shown = await awaited(narrow.models.retrieve(name))
        answer = await complete(narrow, "hi", model=name)

        assert shown.id == name
        assert shown.object == "model"
        assert answer.choices[0].message.content


async def test_unknown_model_cannot_be_shown(client: Client) -> None:
    with pytest.raises(NotFoundError) as caught:
        await awaited(client.models.retrieve("nobody/nothing"))

    assert caught.value.code == "model_not_found"
