"""Media as OpenAI's APIs name them: by an address, which may hold them."""

from cluster_gw.canonical.conversation import Media
from cluster_gw.wire.data_url import split_data_url


def image_at(url: str, detail: str = "") -> Media:
    """An image, by its bytes or its address."""
    media_type, data = split_data_url(url)
    if data:
        return Media(media_type=media_type or "image/png", data=data, detail=detail)
    return Media(media_type="image/*", url=url, detail=detail)


def document_in(file_data: str, name: str) -> Media:
    """A document, by its bytes: as an address that holds them, or bare."""
    media_type, data = split_data_url(file_data)
    return Media(media_type=media_type or "application/pdf", data=data or file_data, name=name)
