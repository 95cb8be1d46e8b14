"""Solvers (optimizers): they update parameters with their gradients."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.optim import solver as _solver
from cygrad.optim.groups import SolverState
from cygrad.optim.solver import Solver
from cygrad.optim.solvers import (
    AMSGRAD, AdaBelief, AdaBound, Adadelta, Adagrad, Adam, Adamax, AdamW, AMSBound, Lamb, Lars, Lion, Momentum,
    Nesterov, RMSprop, RMSpropGraves, Sgd, SgdW,
)

SGD = Sgd
_solver.Adam, _solver.Sgd = Adam, Sgd               # pickles of version 0.1 have these paths

__all__ = [
    "AMSBound", "AMSGRAD", "AdaBelief", "AdaBound", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lamb", "Lars",
    "Lion", "Momentum", "Nesterov", "RMSprop", "RMSpropGraves", "SGD", "Sgd", "SgdW", "Solver",
    "SolverState",
]
