"""Executing operations: eagerly, in place, or as a replay of captured ones."""
