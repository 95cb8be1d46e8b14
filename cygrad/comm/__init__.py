"""Several processes that compute one step together, over MPI: sums of gradients, also while backward runs, and solvers
whose states are divided among the processes.

    mpiexec -n 2 python train.py

starts two processes, the ranks 0 and 1. `pip install cygrad[mpi]` brings mpi4py and an MPI. A process that no launcher
of MPI started is alone: rank 0 of 1, and it needs neither."""

from cygrad.comm.communicator import Communicator
from cygrad.comm.overlap import AllReduceScope
from cygrad.comm.sharded import ShardedSolver

__all__ = ["AllReduceScope", "Communicator", "ShardedSolver"]


def __dir__(): return __all__
