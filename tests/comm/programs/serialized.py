"""A scope under an MPI that allows calls of the main thread only."""

from common import COMM, RANK, SIZE, main

import cygrad as cg


def check_the_sum_begins_after_backward():
    from mpi4py import MPI

    assert MPI.Query_thread() < MPI.THREAD_MULTIPLE
    w = cg.ones(3).attach_grad()
    scope = COMM.all_reduce_callback([w], 2)
    with scope:
        with cg.record(): y = (w * (RANK + 1.0)).sum()
        y.backward()
        assert scope.reduced == 0
    assert scope.reduced == 1 and w.grad.tolist() == [sum(range(1, SIZE + 1))] * 3


if __name__ == "__main__": main(globals())
