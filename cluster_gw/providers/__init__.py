"""Upstream-facing codecs and presets: encode a request, decode an answer or an error."""
