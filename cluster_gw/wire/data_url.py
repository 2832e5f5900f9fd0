"""Addresses that hold what they name: `data:image/png;base64,…` (RFC 2397)."""

from typing import Final

SCHEME: Final = "data:"
BASE64: Final = ";base64"


def split_data_url(url: str) -> tuple[str, str]:
    """Media type and base64 of a data URL; both empty for any other address.

    Data that is not base64 counts as none: nobody sends media that way.
    """
    if url[: len(SCHEME)].lower() != SCHEME:
        return "", ""
    head, _, data = url[len(SCHEME) :].partition(",")
    if not head.lower().endswith(BASE64):
        return "", ""
    return head[: -len(BASE64)].partition(";")[0].strip().lower(), data


def data_url(media_type: str, data: str) -> str:
    """The address of base64 data."""
    return f"{SCHEME}{media_type}{BASE64},{data}"
