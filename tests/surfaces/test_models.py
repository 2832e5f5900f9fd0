"""The models listing in the shapes of OpenAI and Gemini."""

import msgspec

from cluster_gw.surfaces.gemini_models import GeminiPage, encode_gemini_models
from cluster_gw.surfaces.models import CREATED_S, ListedModel, encode_model, encode_models


def test_one_model_tells_what_is_known() -> None:
    model = ListedModel(id="groq/llama", owned_by="groq", name="Llama", context_window=8192)

    assert msgspec.json.decode(encode_model(model)) == {
        "id": "groq/llama",
        "object": "model",
        "created": CREATED_S,
        "owned_by": "groq",
        "name": "Llama",
        "context_window": 8192,
        "context_length": 8192,
        "available": True,
    }


def test_the_listing_keeps_order_and_leaves_out_the_unknown() -> None:
    models = [ListedModel(id="auto", owned_by="cluster-gw", available=False)]

    assert msgspec.json.decode(encode_models(models)) == {
        "object": "list",
        "data": [
            {
                "id": "auto",
                "object": "model",
                "created": CREATED_S,
                "owned_by": "cluster-gw",
                "available": False,
            }
        ],
    }


def test_a_model_that_makes_vectors_is_listed_with_its_own_methods() -> None:
    models = [
        ListedModel(id="auto", owned_by="cluster-gw"),
        ListedModel(id="vectors", owned_by="cluster-gw", is_embedding=True),
    ]

    page = encode_gemini_models(models, GeminiPage())

    assert isinstance(page, bytes)
    listed = msgspec.json.decode(page)["models"]

    assert [one["supportedGenerationMethods"] for one in listed] == [
        ["generateContent", "countTokens"],
        ["embedContent", "batchEmbedContents"],
    ]
