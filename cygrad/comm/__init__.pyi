# Written by tools/make_stubs.py; do not edit.

from cygrad.comm.overlap import AllReduceScope as AllReduceScope
from cygrad.comm.communicator import Communicator as Communicator
from cygrad.comm.sharded import ShardedSolver as ShardedSolver
__all__ = ['AllReduceScope', 'Communicator', 'ShardedSolver']
