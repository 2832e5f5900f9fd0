"""Errors of requests that OpenAI's APIs do not take."""

from collections.abc import Mapping

from cluster_gw.errors import ErrorBody
from cluster_gw.wire.json_codec import UnexpectedShapeError


def misshapen(error: UnexpectedShapeError, remedies: Mapping[str, str]) -> ErrorBody:
    """The error of a body that is JSON but not of the format; names the path and a remedy.

    Args:
        error: what is wrong where.
        remedies: by the last name of a path, without an index.
    """
    if not error.path:
        return refused("invalid_json", "The body must be a JSON object.", None)
    name = error.path.rpartition(".")[2].partition("[")[0]
    remedy = remedies.get(name)
    message = f"{error.path} {error.problem}."
    return refused("invalid_request", f"{message} {remedy}" if remedy else message, error.path)


def refused(code: str, message: str, param: str | None) -> ErrorBody:
    """A 400."""
    return ErrorBody(
        status=400, type="invalid_request_error", code=code, message=message, param=param
    )
