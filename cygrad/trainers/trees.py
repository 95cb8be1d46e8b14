"""State dicts as files have them: nested dicts, lists and tuples as JSON, and their tensors beside it.

JSON has numbers, strings, true, false, null and lists of these. Everything else is an object with one key: a dict is
{"dict": [[key, value], ...]}, a tuple {"tuple": [...]}, a tensor {"tensor": "its name"}, a NumPy array {"array": "its
name"}."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray

DEEPEST = 100               # levels of a state dict


class Leaves:
    """The tensors of a state dict, each once, by name."""

    def __init__(self, who: str):
        self.who = who
        self.tensors: dict[str, Any] = {}
        self.known: dict[Any, str] = {}             # by what identifies the elements

    def split(self, value: Any, path: str, depth: int = 0) -> Any:
        """The JSON form of `value`, whose tensors are added. `path` is its place, for errors."""
        if depth > DEEPEST: raise ValueError(f"{self.who}: {cut(path)} is nested more than {DEEPEST} deep")
        if value is None or isinstance(value, (bool, str)): return value
        if isinstance(value, np.bool_): return bool(value)
        if isinstance(value, Integral): return int(value)
        if isinstance(value, Real): return float(value)
        if isinstance(value, Tensor): return {"tensor": self.add(value, path)}
        if isinstance(value, np.ndarray): return {"array": self.add(value, path)}
        if isinstance(value, Mapping):
            return {"dict": [[self.key(key, path), self.split(part, f"{path}[{key!r}]", depth + 1)]
                             for key, part in value.items()]}
        if isinstance(value, (list, tuple)):
            parts = [self.split(part, f"{path}[{k}]", depth + 1) for k, part in enumerate(value)]
            return {"tuple": parts} if isinstance(value, tuple) else parts
        raise TypeError(f"{self.who}: {cut(path)} is {described(value)}; a state dict can have tensors, arrays, "
                        f"numbers, strings, None, lists, tuples and dicts of these")

    def key(self, key: Any, path: str) -> Any:
        if isinstance(key, (str, bool, int, float)): return key
        raise TypeError(f"{self.who}: the keys of {cut(path)} must be strings or numbers, got {described(key)}")

    def add(self, value: Any, path: str) -> str:
        """The name of a tensor. Tensors with the same elements are stored once."""
        try: array = (value.detach() if isinstance(value, Tensor) else asarray(value)).numpy()
        except (TypeError, ValueError) as e: raise type(e)(f"{self.who}: {cut(path)} cannot be saved: {e}") from None
        place = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str
        if not array.size or place not in self.known:
            self.known[place] = f"{len(self.tensors)}"
            self.tensors[self.known[place]] = array
        return self.known[place]


def joined(value: Any, tensors: Mapping[str, Tensor], damaged: "Damaged", depth: int = 0) -> Any:
    """What Leaves.split() has made `value` of. `tensors` are used as they are."""
    if depth > 2 * DEEPEST: damaged("it is nested too deep")
    if value is None or isinstance(value, (bool, str, int, float)): return value
    if isinstance(value, list): return [joined(part, tensors, damaged, depth + 1) for part in value]
    match value:
        case {"tensor": str(name)} if name in tensors: return tensors[name]
        case {"array": str(name)} if name in tensors: return tensors[name].numpy()
        case {"tuple": [*parts]}: return tuple(joined(part, tensors, damaged, depth + 1) for part in parts)
        case {"dict": [*parts]} if all(isinstance(part, list) and len(part) == 2
                                       and isinstance(part[0], (str, bool, int, float)) for part in parts):
            return {key: joined(part, tensors, damaged, depth + 1) for key, part in parts}
    damaged(f"a value is {described(value)}")


class Damaged:
    """Raises ValueError for a file that is no checkpoint."""

    def __init__(self, file: str):
        self.file = file

    def __call__(self, what: str) -> NoReturn:
        raise ValueError(f"{self.file} is not a checkpoint of a Trainer: {what}")
