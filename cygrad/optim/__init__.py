"""Solvers (optimizers): they update parameters with their gradients."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from importlib import import_module as _import_module

from cygrad.optim.solver import Adam, Sgd, Solver

SGD = Sgd

__all__ = ["SGD", "Adam", "Sgd", "Solver"]

_SCHEDULES = (                                      # loaded at first use
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CosineScheduler",
    "ExponentialLR", "ExponentialScheduler", "LRScheduler", "LambdaLR", "LinearLR", "LinearWarmupScheduler",
    "MultiStepLR", "OneCycleLR", "PolynomialLR", "PolynomialScheduler", "ReduceLROnPlateau", "SequentialLR", "StepLR",
    "StepScheduler",
)
__all__ += _SCHEDULES


def __getattr__(name):
    if name == "schedules": return _import_module("cygrad.optim.schedules")
    if name not in _SCHEDULES: raise AttributeError(f"module 'cygrad.optim' has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module("cygrad.optim.schedules"), name)
    return found


def __dir__():
    return sorted({*globals(), *_SCHEDULES, "schedules"})
