"""Batches for training: from arrays, samples and streams, shuffled, read ahead, in memory that is used again."""

from cygrad.data.loader import DataLoader

__all__ = ["DataLoader"]
