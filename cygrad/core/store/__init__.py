"""Memory: the arena, buffers and layouts."""
