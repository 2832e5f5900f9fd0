"""Errors of requests that a surface does not take."""

from collections.abc import Mapping

from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_bounds import Excess
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError


def unread(
    error: InvalidJsonError | UnexpectedShapeError, remedies: Mapping[str, str]
) -> ErrorBody:
    """The error of a body that is no JSON, or not of the format; see `misshapen`."""
    if isinstance(error, UnexpectedShapeError):
        return misshapen(error, remedies)
    return refused("invalid_json", f"The body is no valid JSON: {error}.", None)


def excessive(excess: Excess) -> ErrorBody:
    """The error of a request above a bound."""
    return refused("invalid_request", excess.message, excess.param)


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
