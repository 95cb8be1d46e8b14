"""The loaders that pickles name. A pickle stores this path, so it never changes, wherever the loaders are defined.

Nothing in the package imports this module; pickle does. Version 0.1 wrote the same path for tensors."""

from cygrad.core.execute.generator import load_generator
from cygrad.core.graph.gradient_slice import load_gradient_slice
from cygrad.core.interop.pickling import load_tensor, load_waiting

__all__ = ["load_generator", "load_gradient_slice", "load_tensor", "load_waiting"]
