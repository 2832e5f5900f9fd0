"""What the data port says of paths it does not serve: what it serves instead, and likely slips."""

from typing import Final

from cluster_gw.errors import ErrorBody
from cluster_gw.server.answers import SHOWN_CHARACTERS, method_not_allowed
from cluster_gw.surfaces import SURFACES
from cluster_gw.wire.redact import without_keys

NO_SUCH_METHOD: Final = 405
SERVED: Final = (
    f"{', '.join(SURFACES)}, /v1/messages/count_tokens, /v1/models, and generateContent, "
    "streamGenerateContent, countTokens, embedContent and batchEmbedContents below /v1beta/models"
)
# First parts of paths: versions of vendors' APIs, Azure's deployments, OpenAI's engines of old.
VENDOR_ROOTS: Final = frozenset(
    {"v1", "v1beta", "v1alpha", "v2", "v3", "upload", "openai", "engines", "deployments"}
    | {"rerank", "embed", "embeddings", "mcp"}
)
OLLAMA: Final = frozenset(  # below /api; whatever else is there is the operations port's
    {"blobs", "chat", "copy", "create", "delete", "embed", "embeddings", "generate", "ps"}
    | {"pull", "push", "show", "tags", "version"}
)
OPERATIONS: Final = frozenset({"api", "livez", "readyz", "metrics", "ui", "health"})


def unserved(path: str, method: str, status: int) -> ErrorBody:
    """The error of a path, or of a method of it, that is not served.

    Args:
        path: as it was asked for, without its query.
        method: of the request.
        status: 405 where the path has other methods, else 404.
    """
    path = without_keys(path)
    if status == NO_SUCH_METHOD:
        return method_not_allowed(method, path)
    shown, slip = path[:SHOWN_CHARACTERS], slip_of(path)
    is_vendors = is_of_a_vendor(path)
    told = f"{shown} is not served here" if is_vendors else f"Nothing is served at {shown}"
    if slip:
        told = f"{told}: {slip}"
    elif is_vendors:
        told = f"{told}; {SERVED} are"
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="surface_not_supported" if is_vendors else "not_found",
        message=f"{told}.",
    )


def slip_of(path: str) -> str:
    """What was probably meant by a path; empty when nothing comes to mind."""
    meant = next((served for served in SURFACES if is_near(path, served)), None)
    if meant is not None:
        return f"{meant} is meant? The base URL of an SDK of OpenAI ends in /v1, others have none"
    if path.lstrip("/").partition("/")[0] in OPERATIONS and not is_of_a_vendor(path):
        return "it is served on the operations port, server.admin_port"
    return ""


def is_of_a_vendor(path: str) -> bool:
    """Whether an API of some vendor has such paths."""
    root, _, rest = path.lstrip("/").partition("/")
    return root in VENDOR_ROOTS or (root == "api" and rest.partition("/")[0] in OLLAMA)


def is_near(path: str, served: str) -> bool:
    """Whether a path has the version twice or not at all, or a slash at its end."""
    bare = served.removeprefix("/v1")
    return path.rstrip("/") in {served, bare, f"/v1{served}"}
