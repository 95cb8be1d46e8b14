"""Solvers: rules that move parameters along their gradients."""

from cygrad.optim.solver import Adam, Sgd, Solver

__all__ = ["Adam", "Sgd", "Solver"]
