"""The paths that reports are written to and read from."""

import os

from cygrad.core.errors import described


def file_path(path, who, example):
    """`path` as text, for a file that `who` writes or reads. Raises TypeError or ValueError, with the `example` of a
    path."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{who}: wanted the path of a file, such as {example!r}, got {described(path)}")
    name = os.fsdecode(path)
    if not name: raise ValueError(f"{who}: wanted the path of a file, such as {example!r}, got an empty one")
    if os.path.isdir(name):
        raise ValueError(f"{who}: wanted the path of a file, got the directory {name!r}; name a file in it, such as "
                         f"{os.path.join(name, example)!r}")
    return name
