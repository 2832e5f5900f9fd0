"""Whether an answer to a request for embeddings is one: enough vectors of the right length."""

from collections.abc import Sequence

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingModel


def find_flaw(
    asked: EmbeddingAsk, model: EmbeddingModel | None, lengths: Sequence[int | None]
) -> str | None:
    """Tell what is wrong with an answer, None when nothing is.

    A vector of another length than was asked for, or than the model is declared to have, would
    silently spoil what it is compared with.

    Args:
        asked: the request.
        model: as declared.
        lengths: of each vector; None for what is no vector.
    """
    if len(lengths) != asked.count:
        return f"{len(lengths)} vectors for {asked.count} inputs"
    wanted = asked.dimensions or (None if model is None else model.dimensions)
    first = lengths[0]
    for place, length in enumerate(lengths):
        if length is None:
            return f"vector {place} is no array of numbers"
        if length != (wanted or first):
            return f"vector {place} has {length} dimensions instead of {wanted or first}"
    return None
