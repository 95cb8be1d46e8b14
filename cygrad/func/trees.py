"""Containers of tensors: lists, tuples, dicts, dataclasses and Modules, taken apart and put together again."""

from copy import copy
from dataclasses import fields, is_dataclass, replace

import numpy as np

from cygrad.core.graph.tensor import Tensor

LEAVES = (Tensor, float, int, np.ndarray, np.generic)


def parts(tree):
    """(keys, parts, build) of a container, None for anything else. build(parts) makes such a container of others."""
    if isinstance(tree, LEAVES): return None
    if isinstance(tree, dict):
        keys = list(tree)
        return keys, list(tree.values()), lambda new: like(tree, zip(keys, new, strict=True))
    if isinstance(tree, (list, tuple)):
        of = type(tree)
        return list(range(len(tree))), list(tree), (lambda new: of(*new)) if hasattr(of, "_fields") else of
    if is_dataclass(tree) and not isinstance(tree, type):
        names = [f.name for f in fields(tree) if f.init]
        return names, [getattr(tree, n) for n in names], lambda new: replace(tree, **dict(zip(names, new, strict=True)))
    return tree._tree() if hasattr(type(tree), "_tree") else None         # (a Module)


def like(tree, items):
    """A dict of the class of `tree` with other values."""
    new = dict(items)
    if type(tree) is dict: return new
    other = copy(tree)                              # (a defaultdict keeps its factory)
    other.update(new)
    return other


def flatten(tree):
    """(leaves, build): the tensors, arrays and numbers of a container in order, and a function that makes such a
    container of as many others. What is none of these, such as None or a string, belongs to the container."""
    if type(tree) in (tuple, list) and all(isinstance(x, LEAVES) for x in tree): return list(tree), type(tree)
    leaves = []
    make = walk(tree, leaves)
    return leaves, lambda new: make(iter(new))


def walk(tree, leaves):
    """flatten(), which appends to `leaves`. The function takes an iterator."""
    if isinstance(tree, LEAVES):
        leaves.append(tree)
        return next
    found = parts(tree)
    if found is None: return lambda _: tree
    _, inner, build = found
    makers = [walk(part, leaves) for part in inner]
    return lambda new: build([make(new) for make in makers])


def paths(tree, path=()):
    """The path of each leaf: the keys that lead to it."""
    if isinstance(tree, LEAVES): return [path]
    found = parts(tree)
    if found is None: return []
    return [p for key, part in zip(*found[:2], strict=True) for p in paths(part, (*path, key))]


def named(path):
    """A path for messages: "['weight'][0]"."""
    return "".join([f"[{key!r}]" for key in path])
