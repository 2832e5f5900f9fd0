"""Thin commands, one file per noun."""
