"""Arithmetic, functions and comparisons, element by element."""
