"""An agent of `pydantic-ai` in the matrix: asks for the cells named, prints what it saw as JSON.

A program of its own, since the framework is not installed beside the gateway (`agent_packages.py`).
"""

import asyncio
import os
import sys
import time
from typing import Any, Final

import httpx
import msgspec
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

ASK: Final = "how are you?"
LEFT_WITHIN_S: Final = 5.0
MODELS: Final = {"py-agent-chat": OpenAIChatModel, "py-agent-responses": OpenAIResponsesModel}


class Place(BaseModel):
    """What is asked for in structured output."""

    city: str
    days: int


class AgentClient:
    """What the matrix wants of a client, said with agents.

    Args:
        kind: which API the agent's model speaks.
        client: of the gateway.
    """

    def __init__(self, kind: Any, client: AsyncOpenAI) -> None:
        self._kind = kind
        self._provider = OpenAIProvider(openai_client=client)

    def _agent(self, model: str, **options: Any) -> Any:
        return Agent(self._kind(model, provider=self._provider), retries=0, **options)

    async def chat(self, model: str) -> str:
        return str((await self._agent(model).run(ASK)).output)

    async def streaming(self, model: str) -> str:
        async with self._agent(model).run_stream(ASK) as run:
            return "".join([piece async for piece in run.stream_text(delta=True, debounce_by=None)])

    async def tools(self, model: str) -> str:
        cities: list[str] = []

        def weather(city: str, days: int) -> str:
            """Tell the weather of a city."""
            cities.append(city)
            return "sunny"

        async with self._agent(model, tools=[weather]).run_stream(ASK) as run:
            text = "".join([piece async for piece in run.stream_text(delta=True)])
        assert cities == ["Oslo"]
        return text

    async def structure(self, model: str) -> dict[str, Any]:
        place = (await self._agent(model, output_type=NativeOutput(Place)).run(ASK)).output
        assert isinstance(place, Place)
        return place.model_dump()

    async def status(self, model: str) -> int:
        try:
            await self._agent(model).run(ASK)
        except ModelHTTPError as error:
            return int(error.status_code)
        return 200

    async def leave(self, model: str, text: str) -> str:
        """Leave by cancelling the task in which the agent runs, once it said something."""
        begun = asyncio.Event()

        async def listen() -> None:
            async with self._agent(model).run_stream(text) as run:
                async for _piece in run.stream_text(delta=True, debounce_by=None):
                    begun.set()

        listening = asyncio.create_task(listen())
        await asyncio.wait_for(begun.wait(), LEFT_WITHIN_S)
        listening.cancel()
        await asyncio.wait([listening])
        return await left(text)


async def left(name: str) -> str:
    """`left` once the upstream saw that this stream was given up."""
    until_s = time.monotonic() + LEFT_WITHIN_S
    async with httpx.AsyncClient(trust_env=False) as upstream:
        while time.monotonic() < until_s:
            answer = await upstream.get(f"{os.environ['SDK_UPSTREAM_URL']}/left")
            if name in answer.json():
                return "left"
            await asyncio.sleep(0.01)
    return "still open upstream"


async def seen_by(client: AgentClient, dialect: str, feature: str, name: str) -> Any:
    """What an agent sees of a feature over a dialect."""
    if feature == "errors":
        return [await client.status(f"{dialect}-refuse"), await client.status("nobody")]
    if feature == "cancellation":
        return await client.leave(f"{dialect}-wait", name)
    call, model = {
        "chat": (client.chat, "say"),
        "streaming": (client.streaming, "say"),
        "tools": (client.tools, "call"),
        "structured output": (client.structure, "place"),
    }[feature]
    return await call(f"{dialect}-{model}")


async def main() -> None:
    """Ask for every cell."""
    url, key = os.environ["SDK_GATEWAY_URL"], os.environ["SDK_APP_KEY"]
    seen: dict[str, Any] = {}
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=10) as opened:
        for client, dialect, feature in msgspec.json.decode(os.environ["SDK_CELLS"]):
            agent = AgentClient(MODELS[client], opened)
            name = f"cell:{client}:{dialect}"
            try:
                told = await seen_by(agent, dialect, feature, name)
            except Exception as error:  # noqa: BLE001 - a cell that fails is told, others go on
                told = repr(error)
            seen["/".join((client, dialect, feature))] = told
    sys.stdout.buffer.write(msgspec.json.encode(seen))


if __name__ == "__main__":
    asyncio.run(main())
