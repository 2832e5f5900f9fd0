"""Framing and vendor schemas; bytes to structs and back."""
