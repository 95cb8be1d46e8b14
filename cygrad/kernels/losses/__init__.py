"""Kernels. Losses."""
