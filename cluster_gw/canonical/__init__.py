"""The internal language: values only, no behaviour."""
