"""Random tensors. A draw depends only on the state of its generator, which is a key and a counter. So the same seed
gives the same numbers for any number of threads, and a restored state repeats them.

The functions here draw from a default generator, which all threads share. The system seeds it until `seed` is called. A
forked child continues from its parent's state, so seed it there."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core.answers import of_module as _of_module
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.graph.tensor import Tensor

__all__ = [
    "Generator", "bernoulli", "categorical", "choice", "default_generator", "exponential", "gamma", "gumbel",
    "integers", "normal", "permutation", "poisson", "seed", "shuffle", "truncated_normal", "uniform",
]


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


def shuffle(x, axis=0) -> None:
    """Put the slices of `x` into random order, in place, by the default generator. See `Generator.shuffle`."""
    default_generator.shuffle(x, axis)


def choice(a, size=None, replace=True, p=None, *, shape=None) -> Tensor:
    """Draw random elements of `a` from the default generator. See `Generator.choice`."""
    return default_generator.choice(a, size, replace, p, shape=shape)


def categorical(logits=None, shape=None, axis=-1, *, probs=None, size=None) -> Tensor:
    """Draw categories by `logits` or `probs` from the default generator. See `Generator.categorical`."""
    return default_generator.categorical(logits, shape, axis, probs=probs, size=size)


def exponential(*given, scale=None, shape=None, size=None, dtype=None) -> Tensor:
    """Draw exponential(shape, scale=1.0) from the default generator. See `Generator.exponential`."""
    return default_generator.exponential(*given, scale=scale, shape=shape, size=size, dtype=dtype)


def gumbel(*given, loc=None, scale=None, shape=None, size=None, dtype=None) -> Tensor:
    """Draw gumbel(shape, loc=0.0, scale=1.0) from the default generator. See `Generator.gumbel`."""
    return default_generator.gumbel(*given, loc=loc, scale=scale, shape=shape, size=size, dtype=dtype)


def gamma(*given, a=None, scale=None, shape=None, size=None, dtype=None) -> Tensor:
    """Draw gamma(shape, a, scale=1.0) from the default generator. See `Generator.gamma`."""
    return default_generator.gamma(*given, a=a, scale=scale, shape=shape, size=size, dtype=dtype)


def poisson(*given, lam=None, shape=None, size=None, dtype="int64") -> Tensor:
    """Draw poisson(shape, lam) from the default generator. See `Generator.poisson`."""
    return default_generator.poisson(*given, lam=lam, shape=shape, size=size, dtype=dtype)


def truncated_normal(shape=None, low=-2.0, high=2.0, loc=0.0, scale=1.0, *, size=None, dtype=None) -> Tensor:
    """Draw from a normal distribution between `low` and `high`. See `Generator.truncated_normal`."""
    return default_generator.truncated_normal(shape, low, high, loc, scale, size=size, dtype=dtype)


def __getattr__(name): raise AttributeError(_of_module(name, __name__))


def __dir__(): return __all__
