"""Makes the parameters of layers, and checks the arguments that many layers share."""

import math
from functools import partial

import numpy as np

from cygrad.core.dtypes import get_default_dtype, read_dtype
from cygrad.core.errors import as_float, described
from cygrad.core.execute.generator import Generator, default_generator


def floating(layer, device, dtype):
    """The dtype of a layer's parameters, from the arguments `device` and `dtype`."""
    if device is not None and str(device) != "cpu":
        raise ValueError(f"{type(layer).__name__}: device must be None or \"cpu\", got {described(device)}; all memory "
                         f"is the CPU's")
    if dtype is None: return get_default_dtype()
    dtype = np.dtype(read_dtype(dtype))
    if dtype.kind != "f":
        raise TypeError(f"{type(layer).__name__}: dtype must be float32 or float64, got {dtype}")
    return dtype


def size(layer, name, value, least=1):
    """A size that a layer is made with, as an int of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{type(layer).__name__}: {name} must be an int, got {described(value)}")
    n = value.__index__()
    if n < least: raise ValueError(f"{type(layer).__name__}: {name} must be at least {least}, got {n}")
    return n


def number(layer, name, value):
    """A number that a layer is made with, as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{type(layer).__name__}: {name} must be a number, got {described(value)}")
    return as_float(value, f"{type(layer).__name__}: {name}")


def check_features(layer, name, x, n):
    """Raise ValueError if the last dimension of an input is not `n`. Layers call it when an operator has failed: then
    the error is about the input, not about a weight."""
    shape = np.shape(x)
    if shape[-1:] != (n,):
        raise ValueError(f"{type(layer).__name__}: {name} must have {n} features, its last dimension, got shape "
                         f"{shape}") from None


def source(generator):
    """The generator that draws: the given one, or the default one for None."""
    if generator is None: return default_generator
    if isinstance(generator, Generator): return generator
    raise TypeError(f"generator must be a cygrad.random.Generator or None (the default one), got "
                    f"{described(generator)}")


def uniform_parameter(shape, fan_in, dtype, generator):
    """A parameter from U(-b, b), b = 1 / sqrt(fan_in): PyTorch's default for linear layers and convolutions, which is
    kaiming_uniform_ with a = sqrt(5)."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return source(generator).uniform(shape, -bound, bound, dtype=dtype).requires_grad_()


def drawing(how, fan_in):
    """uniform_parameter as a function of the shape, for the dict `how` of a layer (see waiting.py)."""
    return partial(uniform_parameter, fan_in=fan_in, dtype=how["dtype"], generator=how["generator"])
