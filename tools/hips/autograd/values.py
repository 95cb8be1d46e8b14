"""Containers of tensors, and the same of NumPy's arrays. Inside of a transformation, values stay tensors."""

import numpy as np

import cygrad as cg
from cygrad.core.graph.lifts import depth


def mapped(f, x):
    if isinstance(x, dict): return {k: mapped(f, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)): return type(x)(mapped(f, v) for v in x)
    return f(x)


def leaves(x):
    """What a container has, of any kind."""
    if isinstance(x, dict): x = list(x.values())
    return [v for part in x for v in leaves(part)] if isinstance(x, (list, tuple)) else [x]


def tensors(x):
    """Numbers of float64 and arrays as tensors."""
    return mapped(lambda v: cg.tensor(np.asarray(v)) if isinstance(v, (float, np.ndarray, np.floating)) else v, x)


def plain(x):
    """Tensors as arrays and numbers, unless they are recorded or of an open level."""
    def one(v):
        if not isinstance(v, cg.Tensor) or v.requires_grad or depth(): return v
        return v.numpy() if v.ndim else v.item()

    return mapped(one, x)
