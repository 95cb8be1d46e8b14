"""Solvers (optimizers): they update parameters with their gradients."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.optim.solver import Adam, Sgd, Solver

SGD = Sgd

__all__ = ["SGD", "Adam", "Sgd", "Solver"]
