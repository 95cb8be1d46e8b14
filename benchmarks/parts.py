"""What models.py, nets.py, sequences.py and layers.py have in common."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Trainer:
    """step(x, target) trains once and returns the loss. tensor(array) is the library's tensor, read(loss) a float."""

    step: Callable
    tensor: Callable
    read: Callable


def over_steps(on, gates, x, h, c):
    """All states of a cell over x, by a library's functions."""
    states = []
    for t in range(x.shape[0]):
        i, f, g, o = gates(x[t], h)
        c = on.sigmoid(f) * c + on.sigmoid(i) * on.tanh(g)
        h = on.sigmoid(o) * on.tanh(c)
        states.append(h)
    return on.stack(states, 0)
