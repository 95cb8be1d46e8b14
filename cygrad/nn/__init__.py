"""Layers, losses and their initialization. Names, arguments and defaults are PyTorch's."""

from cygrad.nn.containers import ModuleDict, ModuleList, Sequential
from cygrad.nn.module import Module, Parameter

__all__ = ["Module", "ModuleDict", "ModuleList", "Parameter", "Sequential"]
