"""Batches for training: from arrays, samples and streams, shuffled, read ahead, in memory that is used again."""

from cygrad.data.answers import of_data as _of_data
from cygrad.data.loader import DataLoader

__all__ = ["DataLoader"]


def __getattr__(name): raise AttributeError(_of_data(name))


def __dir__(): return __all__
