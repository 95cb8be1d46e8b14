"""`python -m cygrad run`: a net from a file, on arrays from files."""

import os
from collections.abc import Sequence

import numpy as np

from cygrad.core.errors import cut, described
from cygrad.nets.net import Net, load


def run(path: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Run the net of a file on .npy files, each "PATH" or "NAME=PATH", and write its outputs to such files. Those
    without one are printed. Everything that is known before the run is checked before it."""
    net = load(path)
    sources = assigned(net, inputs, [*map(str, net.inputs)], "input")
    targets = assigned(net, outputs, [*map(str, net.outputs)], "output")
    for target in targets.values():
        folder = os.path.dirname(target) or "."
        if not target.endswith(".npy"):
            raise ValueError(f"an output must be a file named *.npy, got {cut(repr(target))}")
        if not os.path.isdir(folder):
            raise ValueError(f"{cut(repr(target))}: there is no directory {cut(repr(folder))}")
    found = net(**{name: read(source) for name, source in sources.items()})
    for name, y in zip(map(str, net.outputs), found if isinstance(found, tuple) else (found,), strict=True):
        if name in targets: np.save(targets[name], y.numpy(), allow_pickle=False)
        else: print(f"{name}: {y.dtype} {tuple(y.shape)}\n{y.numpy()}")


def assigned(net: Net, words: Sequence[str], names: list[str], what: str) -> dict[str, str]:
    """The file of each input or output. A word without a name is for the first one that has no file."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if equals and name in names: pass
        elif equals and not os.path.exists(word) and what == "input" or len(found) == len(names):
            raise ValueError(f"net {cut(net.name)} has the {what}s {cut(', '.join(names)) or 'none'}; no one of them "
                             f"is left for {cut(repr(word))}; write {what} NAME=PATH, each name once")
        else: name, path = next(n for n in names if n not in found), word
        if name in found: raise ValueError(f"the {what} {described(name)} is given twice; give each {what} one file")
        found[name] = path
    return found


def read(path: str) -> np.ndarray:
    """The array of a .npy file. A file of Python objects is refused, because reading them would run code."""
    try: found = np.load(path, allow_pickle=False)
    except (EOFError, ValueError) as e:
        raise ValueError(f"{cut(repr(path))} is no .npy file of numbers: {e}; write it with numpy.save") from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise ValueError(f"{cut(repr(path))} has several arrays; write each with numpy.save")
    return found
