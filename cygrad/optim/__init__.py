"""Solvers (optimizers), which update parameters with their gradients, and schedules of their learning rates.

A solver can be created in two spellings. In nnabla's the parameters come later, in PyTorch's they come first:

    solver = cg.optim.Adam(alpha=0.001, beta1=0.9)
    solver.set_parameters(model.named_parameters())

    solver = cg.optim.Adam(model.parameters(), lr=0.001, betas=(0.9, 0.999), weight_decay=0.01)
    solver = cg.optim.Sgd([{"params": model.parameters(), "lr": 0.01}, {"params": [w]}], lr=0.1)

Settings mean the same in both. A step is: solver.zero_grad(), a recorded forward pass, loss.backward(),
solver.update()."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from importlib import import_module as _import_module

from cygrad.optim.answers import of_optim as _of_optim
from cygrad.optim import solver as _solver
from cygrad.optim.groups import SolverState
from cygrad.optim.solver import Solver
from cygrad.optim.solvers import (
    AMSGRAD, AdaBelief, AdaBound, Adadelta, Adagrad, Adam, Adamax, AdamW, AMSBound, Ftrl, Lamb, Lars, Lion, Momentum,
    Nesterov, RMSprop, RMSpropGraves, Sgd, SgdW,
)

SGD = Sgd
_solver.Adam, _solver.Sgd = Adam, Sgd               # pickles of version 0.1 have these paths

__all__ = [
    "AMSBound", "AMSGRAD", "AdaBelief", "AdaBound", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl",
    "Lamb", "Lars", "Lion", "Momentum", "Nesterov", "RMSprop", "RMSpropGraves", "SGD", "Sgd", "SgdW", "Solver",
    "SolverState",
]

_SCHEDULES = (                                      # loaded at first use
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CosineScheduler", "CyclicLR",
    "ExponentialLR", "ExponentialScheduler", "LRScheduler", "LambdaLR", "LinearLR", "LinearWarmupScheduler",
    "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "PolynomialScheduler", "ReduceLROnPlateau",
    "SequentialLR", "StepLR", "StepScheduler",
)
__all__ += _SCHEDULES


def __getattr__(name):
    if name == "schedules": return _import_module("cygrad.optim.schedules")
    if name not in _SCHEDULES: raise AttributeError(_of_optim(name, __all__))
    found = globals()[name] = getattr(_import_module("cygrad.optim.schedules"), name)
    return found


def __dir__(): return [*__all__, "schedules"]
