"""Tensors in files: .safetensors, which most libraries for deep learning read, and .npz of NumPy. Reading runs no code
from a file, and checks what a file promises before memory is taken for it."""

from cygrad.io.saving import load, metadata, save

__all__ = ["load", "metadata", "save"]


def __dir__(): return __all__
