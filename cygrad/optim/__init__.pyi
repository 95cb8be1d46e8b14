# Written by tools/make_stubs.py; do not edit.

from cygrad.optim.solver import Adam as Adam
from cygrad.optim.solver import Sgd as SGD
from cygrad.optim.solver import Sgd as Sgd
from cygrad.optim.solver import Solver as Solver
__all__ = ['Adam', 'SGD', 'Sgd', 'Solver']
