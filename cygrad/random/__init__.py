"""Random tensors. Each draw is a function of a generator's state, a key and a counter, and of nothing else: the same
seed gives the same numbers for any number of threads, and a state that was kept gives them again.

The functions here draw from one default generator, which all threads share; it is seeded by the system until `seed` is
called. A forked child goes on from its parent's state: seed it."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.graph.tensor import Tensor

__all__ = ["Generator", "bernoulli", "default_generator", "integers", "normal", "permutation", "seed", "uniform"]


def seed(n: int) -> None:
    """Start the default generator again from the seed `n`, a whole number from 0 to 2**64 - 1."""
    default_generator.state = n, 0


def normal(*given, loc=None, scale=None, shape=None, size=None, dtype=None) -> Tensor:
    """normal(shape, loc=0.0, scale=1.0) from the default generator: see `Generator.normal`."""
    return default_generator.normal(*given, loc=loc, scale=scale, shape=shape, size=size, dtype=dtype)


def uniform(*given, low=None, high=None, shape=None, size=None, dtype=None) -> Tensor:
    """uniform(shape, low=0.0, high=1.0) from the default generator: see `Generator.uniform`."""
    return default_generator.uniform(*given, low=low, high=high, shape=shape, size=size, dtype=dtype)


def bernoulli(*given, p=None, shape=None, size=None, dtype="bool") -> Tensor:
    """bernoulli(shape, p=0.5) from the default generator: see `Generator.bernoulli`."""
    return default_generator.bernoulli(*given, p=p, shape=shape, size=size, dtype=dtype)


def integers(*given, low=None, high=None, shape=None, size=None, dtype="int64", endpoint=False) -> Tensor:
    """integers(shape, low, high) from the default generator: see `Generator.integers`."""
    return default_generator.integers(*given, low=low, high=high, shape=shape, size=size, dtype=dtype,
                                      endpoint=endpoint)


def permutation(x) -> Tensor:
    """0 to x - 1, or the rows of x, in random order, from the default generator: see `Generator.permutation`."""
    return default_generator.permutation(x)
