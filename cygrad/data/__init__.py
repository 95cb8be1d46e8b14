"""Batches for training: from arrays, samples and streams, shuffled, read ahead, in memory that is used again."""

from cygrad.core.answers import of_module as _of_module
from cygrad.data.answers import DATA as _DATA
from cygrad.data.loader import DataLoader

__all__ = ["DataLoader"]


def __getattr__(name): raise AttributeError(_of_module(name, __name__, _DATA))


def __dir__(): return __all__
