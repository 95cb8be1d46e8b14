"""Checks the paths of files that cygrad writes or reads."""

import os

from cygrad.core.errors import described


def file_path(path, who, example):
    """`path` as text, for a file that the function `who` writes or reads. Raises TypeError or ValueError with an
    `example`."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{who}: the path of a file is required, such as {example!r}; got {described(path)}")
    name = os.fsdecode(path)
    if not name: raise ValueError(f"{who}: the path of a file is required, such as {example!r}; got an empty one")
    if os.path.isdir(name):
        raise ValueError(f"{who}: the path of a file is required, got the directory {name!r}; name a file in it, such "
                         f"as {os.path.join(name, example)!r}")
    return name


def folder_path(path, who, example):
    """`path` as text, for a folder. Raises TypeError or ValueError with an `example`."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{who}: the path of a folder is required, such as {example!r}; got {described(path)}")
    name = os.fsdecode(path)
    if not name: raise ValueError(f"{who}: the path of a folder is required, such as {example!r}; got an empty one")
    if os.path.exists(name) and not os.path.isdir(name):
        raise ValueError(f"{who}: the path of a folder is required, got the file {name!r}; name another one")
    return name
