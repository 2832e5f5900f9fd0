"""Client-facing codecs: decode a request, encode an answer or an error."""
