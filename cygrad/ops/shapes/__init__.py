"""Shapes and indices: views, joining, indexing, sorting."""
