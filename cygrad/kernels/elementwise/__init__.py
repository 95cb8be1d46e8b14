"""Kernels. Arithmetic, functions and comparisons, element by element."""
