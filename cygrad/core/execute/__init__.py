"""Executing operations: eagerly, in place, or as steps of a program."""
