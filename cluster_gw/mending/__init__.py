"""Mends what models say in the wrong place: thoughts and calls in the text, arguments as text.

Pure: events and answers of the internal language in, the same out. What needs no mending leaves as
the very object that came in, so that its bytes travel on untouched (decision 0055).
"""
