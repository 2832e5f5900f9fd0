"""Every path of a vendor that is not served says so, and what is served instead."""

import pytest

from cluster_gw.server.unserved import unserved
from cluster_gw.surfaces import SURFACES

VENDORS = [
    ("POST", "/v1/images/generations"),
    ("POST", "/v1/images/edits"),
    ("POST", "/v1/audio/speech"),
    ("POST", "/v1/audio/transcriptions"),
    ("GET", "/v1/files"),
    ("DELETE", "/v1/files/file-1"),
    ("POST", "/v1/uploads"),
    ("POST", "/v1/batches"),
    ("POST", "/v1/moderations"),
    ("POST", "/v1/fine_tuning/jobs"),
    ("POST", "/v1/assistants"),
    ("POST", "/v1/threads/t1/runs"),
    ("GET", "/v1/vector_stores"),
    ("GET", "/v1/realtime"),
    ("POST", "/v1/videos"),
    ("GET", "/v1/responses/resp_1"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/chat/completions/chatcmpl-1"),
    ("POST", "/v1/messages/batches"),
    ("POST", "/v1/complete"),
    ("POST", "/v1/rerank"),
    ("POST", "/v2/rerank"),
    ("POST", "/v2/chat"),
    ("POST", "/rerank"),
    ("POST", "/v1beta/models/m:asyncBatchEmbedContent"),
    ("POST", "/v1beta/models/m:batchGenerateContent"),
    ("POST", "/v1beta/models/m:predict"),
    ("POST", "/v1beta/cachedContents"),
    ("GET", "/v1beta/files"),
    ("POST", "/upload/v1beta/files"),
    ("POST", "/v1alpha/models/m:generateContent"),
    ("POST", "/openai/deployments/gpt/chat/completions"),
    ("POST", "/engines/davinci/completions"),
    ("POST", "/api/chat"),
    ("POST", "/api/generate"),
    ("GET", "/api/tags"),
    ("POST", "/api/embed"),
    ("GET", "/api/version"),
    ("POST", "/mcp"),
]


@pytest.mark.parametrize(("method", "path"), VENDORS)
def test_a_path_of_a_vendor_tells_what_is_served(method: str, path: str) -> None:
    error = unserved(path, method, 404)

    assert (error.status, error.code) == (404, "surface_not_supported")
    assert error.message.startswith(f"{path} is not served here; ")
    assert all(served in error.message for served in SURFACES)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/chat/completions", "not_found"),
        ("/v1/v1/chat/completions", "surface_not_supported"),
        ("/v1/chat/completions/", "surface_not_supported"),
    ],
)
def test_a_slip_in_the_base_url_is_pointed_out(path: str, code: str) -> None:
    error = unserved(path, "POST", 404)

    assert error.code == code
    assert "/v1/chat/completions is meant?" in error.message


@pytest.mark.parametrize("path", ["/api/keys", "/readyz", "/metrics", "/ui/"])
def test_paths_of_the_other_port_say_so(path: str) -> None:
    error = unserved(path, "GET", 404)

    assert error.code == "not_found"
    assert "operations port" in error.message


def test_any_other_path_is_not_found() -> None:
    error = unserved("/x" * 200, "GET", 404)

    assert error.code == "not_found"
    assert len(error.message) < 200


def test_another_method_is_not_allowed() -> None:
    error = unserved("/v1/embeddings", "GET", 405)

    assert (error.status, error.code) == (405, "method_not_allowed")
