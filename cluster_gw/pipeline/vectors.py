"""An answer to a request for embeddings, held against what was asked, in the form that was asked.

Most answers are passed on as they came. What came in another order, dialect or encoding is written
anew; a worker looks after others meanwhile, since that is a lot of numbers.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from cluster_gw.canonical.embedding import EmbeddingAsk
from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.vectors import find_flaw
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.targets import Target
from cluster_gw.surfaces.base import VectorSurface
from cluster_gw.wire.vectors import as_base64, as_numbers, is_base64, length_of

AT_ONCE: Final = 16  # vectors: a few ms


async def fitted(
    completion: Completion, asked: EmbeddingAsk, exchange: Exchange, target: Target
) -> Completion | Fault:
    """Give the answer as its client wants it, or the fault it is in truth.

    Args:
        completion: as the codec of the target read it.
        asked: of the exchange.
        exchange: whose answer it is.
        target: that gave it.
    """
    vectors = completion.vectors
    items = () if vectors is None else vectors.items
    lengths = [length_of(item) async for item in unhurried(items)]
    flaw = find_flaw(asked, target.route.embedding, lengths)
    if vectors is None or flaw is not None:
        return flawed(flaw or "no vectors")
    surface = exchange.surface
    if not isinstance(surface, VectorSurface):  # whoever asks for vectors has one
        raise TypeError(type(surface).__name__)
    if vectors.form is asked.form and all(is_base64(item) is asked.is_base64 for item in items):
        return completion
    rewrite = as_base64 if asked.is_base64 else as_numbers
    try:
        written = [rewrite(item) async for item in unhurried(items)]
    except ValueError as error:
        return flawed(f"a vector cannot be read: {error}")
    tokens = exchange.demand.input_tokens
    usage = completion.usage or Usage(prompt_tokens=tokens, total_tokens=tokens)
    body = surface.encode_vectors(written, vectors.model or target.route.model, usage)
    return msgspec.structs.replace(completion, raw=body)


async def unhurried(items: Sequence[msgspec.Raw]) -> AsyncIterator[msgspec.Raw]:
    """Give one after the other, and others their turn in between."""
    for place, item in enumerate(items):
        if place and place % AT_ONCE == 0:
            await asyncio.sleep(0)
        yield item


def flawed(problem: str) -> Fault:
    """The fault of an answer that is none; another route may give a better one."""
    return Fault(kind=FaultKind.MALFORMED, message=problem)
