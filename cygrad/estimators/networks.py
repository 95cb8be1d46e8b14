"""Makes the network and the solver of an estimator from its parameters, with random numbers of its own."""

import os
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import RLock

import cygrad as cg
from cygrad import nn
from cygrad.core.errors import described
from cygrad.optim.settings import count, number
from cygrad.random import default_generator

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU", "silu": "SiLU", "elu": "ELU",
               "leaky_relu": "LeakyReLU", "softplus": "Softplus", "identity": "Identity"}
SOLVERS = {name.lower(): cls for name in cg.optim.__all__
           if isinstance(cls := getattr(cg.optim, name), type) and issubclass(cls, cg.optim.Solver)
           and cls is not cg.optim.Solver}

SWAPPING = RLock()          # held while the default generator has the state of an estimator's
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=lambda: globals().update(SWAPPING=RLock()))


@contextmanager
def default_from(generator):
    """A scope in which the default generator continues `generator`. Layers and operators draw from the default one
    unless they are given another. On exit `generator` has moved and the default one has not."""
    with SWAPPING:
        before = default_generator.state
        try:
            default_generator.state = generator.state
            yield
        finally:
            generator.state, default_generator.state = default_generator.state, before


def drawing(estimator, generator):
    """A function that makes the scope of a forward pass. An MLP with a named activation draws nothing, so it needs no
    scope, which would make the forward passes of other threads wait."""
    plain = not callable(estimator.network) and isinstance(estimator.activation, str)
    return nullcontext if plain else partial(default_from, generator)


def make_network(estimator, x, n_outputs, generator):
    """The network of an estimator for the rows `x` (n, n_features), in their dtype, with parameters from `generator`.
    Raises TypeError or ValueError if `estimator.network` makes none that turns them into (n, n_outputs)."""
    owner, make = type(estimator).__name__, estimator.network
    if not callable(make): return mlp(estimator, x, n_outputs, generator)
    if isinstance(make, nn.Module):
        raise TypeError(f"{owner}: network must be a function (n_features, n_outputs) that makes a network at each "
                        f"fit, got a network, {described(make)}")
    with default_from(generator):
        network = make(x.shape[1], n_outputs)
        if not isinstance(network, nn.Module):
            raise TypeError(f"{owner}: network({x.shape[1]}, {n_outputs}) must return an nn.Module, got "
                            f"{described(network)}")
        network.astype(x.dtype)
        y = network(cg.asarray(x[:1]))              # layers without sizes get theirs
    if not isinstance(y, cg.Tensor) or y.shape != (1, n_outputs):
        raise ValueError(f"{owner}: the network must turn (n, {x.shape[1]}) into (n, {n_outputs}); from (1, "
                         f"{x.shape[1]}) it made {described(y)}")
    return network


def mlp(estimator, x, n_outputs, generator):
    """Linear layers of the sizes `estimator.network`, with activations between them."""
    owner, hidden = type(estimator).__name__, estimator.network
    if not isinstance(hidden, (tuple, list)):
        raise TypeError(f"{owner}: network must be a tuple of hidden sizes, such as (100,), or a function (n_features, "
                        f"n_outputs) that makes an nn.Module; got {described(hidden)}")
    sizes = [x.shape[1], *(count(owner, f"network[{i}]", n) for i, n in enumerate(hidden)), n_outputs]
    activation, layers = activation_of(estimator), []
    with nullcontext() if isinstance(estimator.activation, str) else default_from(generator):
        for n, m in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(n, m, dtype=x.dtype, generator=generator), activation()]
        return nn.Sequential(*layers[:-1]).astype(x.dtype)


def activation_of(estimator):
    """The class of the activation: one of ACTIVATIONS by name, or a class of modules."""
    owner, activation = type(estimator).__name__, estimator.activation
    if isinstance(activation, str) and activation in ACTIVATIONS: return getattr(nn, ACTIVATIONS[activation])
    if isinstance(activation, type) and issubclass(activation, nn.Module): return activation
    raise ValueError(f"{owner}: activation must be one of {', '.join(ACTIVATIONS)}, or a class of modules such as "
                     f"nn.GELU; got {described(activation)}")


def make_solver(estimator, network):
    """The solver of an estimator for the parameters of `network` that are not frozen."""
    owner, make = type(estimator).__name__, estimator.solver
    if isinstance(make, str):
        if make.lower() not in SOLVERS:
            names = ", ".join(dict.fromkeys(cls.__name__ for cls in SOLVERS.values()))
            raise ValueError(f"{owner}: solver must be one of {names}, or a class of solvers; got {described(make)}")
        make = SOLVERS[make.lower()]
    if not callable(make):
        raise TypeError(f"{owner}: solver must be a name such as \"Adam\", a class of cygrad.optim, or a function of "
                        f"the parameters that makes a solver; got {described(make)}")
    options = {"lr": estimator.learning_rate, "weight_decay": estimator.weight_decay}
    names = {"lr": "learning_rate", "weight_decay": "weight_decay"}
    options = {key: number(owner, names[key], x) for key, x in options.items() if x is not None}
    parameters = [(name, p) for name, p in network.named_parameters() if p.requires_grad]
    if not parameters: raise ValueError(f"{owner}: the network has no parameters to train: {type(network).__name__}")
    solver = make(parameters, **options)
    if not isinstance(solver, cg.optim.Solver):
        raise TypeError(f"{owner}: solver(parameters) must return a solver of cygrad.optim, got {described(solver)}")
    return solver
