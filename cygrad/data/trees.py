"""Nested samples: tuples, lists and dicts whose leaves are arrays or numbers, taken apart and put together again."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

Spec: TypeAlias = Any       # None for a leaf, else (type, keys or None, specs of the parts)
LEAVES = (np.ndarray, int, float, np.generic)  # the most frequent leaves: asking whether they are mappings takes longer


def flatten(tree: Any, leaves: list[Any]) -> Spec:
    """Append the leaves of `tree` to `leaves`. Returns what build() needs besides them."""
    if not isinstance(tree, LEAVES):
        if isinstance(tree, Mapping):
            return dict, (*tree,), tuple([flatten(part, leaves) for part in tree.values()])
        if isinstance(tree, (tuple, list)):
            return type(tree), None, tuple([flatten(part, leaves) for part in tree])
    leaves.append(tree)
    return None


def build(spec: Spec, leaves: Iterator[Any]) -> Any:
    """The tree of a spec, whose leaves are taken from `leaves`."""
    if spec is None: return next(leaves)
    kind, keys, specs = spec
    parts = [build(part, leaves) for part in specs]
    if keys is not None: return dict(zip(keys, parts, strict=True))
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def place(spec: Spec, k: int, path: str = "") -> str:
    """The place of leaf number `k`, for messages: "[0]['image']", or "" if the sample is a leaf."""
    for key, part in zip(spec[1] or range(len(spec[2])), spec[2], strict=True) if spec is not None else ():
        n = size(part)
        if k < n: return place(part, k, f"{path}[{key!r}]")
        k -= n
    return path


def size(spec: Spec) -> int:
    """The number of leaves."""
    return 1 if spec is None else sum(map(size, spec[2]))
