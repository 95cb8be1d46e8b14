"""Random tensors. A draw depends only on the state of its generator, which is a key and a counter. So the same seed
gives the same numbers for any number of threads, and a restored state repeats them.

The functions here draw from a default generator, which all threads share. The system seeds it until `seed` is called. A
forked child continues from its parent's state, so seed it there."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.graph.tensor import Tensor

__all__ = ["Generator", "bernoulli", "default_generator", "integers", "normal", "permutation", "seed", "uniform"]


def seed(n: int) -> None:
    """Seed the default generator with `n`, an int from 0 to 2**64 - 1. Raises TypeError or ValueError for another
    value."""
    default_generator.state = n, 0


def normal(*given, loc=None, scale=None, shape=None, size=None, dtype=None) -> Tensor:
    """Draw normal(shape, loc=0.0, scale=1.0) from the default generator. See `Generator.normal`."""
    return default_generator.normal(*given, loc=loc, scale=scale, shape=shape, size=size, dtype=dtype)


def uniform(*given, low=None, high=None, shape=None, size=None, dtype=None) -> Tensor:
    """Draw uniform(shape, low=0.0, high=1.0) from the default generator. See `Generator.uniform`."""
    return default_generator.uniform(*given, low=low, high=high, shape=shape, size=size, dtype=dtype)


def bernoulli(*given, p=None, shape=None, size=None, dtype="bool") -> Tensor:
    """Draw bernoulli(shape, p=0.5) from the default generator. See `Generator.bernoulli`."""
    return default_generator.bernoulli(*given, p=p, shape=shape, size=size, dtype=dtype)


def integers(*given, low=None, high=None, shape=None, size=None, dtype="int64", endpoint=False) -> Tensor:
    """Draw integers(shape, low, high) from the default generator. See `Generator.integers`."""
    return default_generator.integers(*given, low=low, high=high, shape=shape, size=size, dtype=dtype,
                                      endpoint=endpoint)


def permutation(x) -> Tensor:
    """The numbers 0 to x - 1, or the rows of x, in random order, from the default generator. See
    `Generator.permutation`."""
    return default_generator.permutation(x)
