"""How an operation runs: eagerly, in place, or again from a capture."""
