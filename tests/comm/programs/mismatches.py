"""Calls that differ between ranks: all ranks raise the same error, and nothing has changed."""

from common import COMM, RANK, SIZE, main, raised

import cygrad as cg

LAST = SIZE - 1


def fails(f, kind, *words):
    """The message is the same on all ranks, has the words, and the communicator still works."""
    text = raised(f, kind)
    for word in words: assert word in text, text
    x = cg.tensor([1.0])
    COMM.all_reduce(x)
    assert x.tolist() == [SIZE]


def check_shapes_and_dtypes():
    x, y = cg.ones(2), cg.ones((3, 4) if RANK < LAST else (3, 5))
    fails(lambda: COMM.all_reduce([x, y]), ValueError, f"all_reduce: arrays[1] is float32 (3, 5) on rank {LAST} and "
          f"float32 (3, 4) on rank 0; they must be equal on all ranks")
    assert x.tolist() == [1, 1] and x.version == 0
    x = cg.ones(2, dtype="float64" if RANK == LAST else "float32")
    for call in (lambda: COMM.bcast([x]),
                 lambda: COMM.all_gather(x, [cg.ones(2, dtype=x.dtype) for _ in range(SIZE)])):
        fails(call, ValueError, f"[0] is float64 (2,) on rank {LAST} and float32 (2,) on rank 0")


def check_numbers_of_arrays_and_options():
    arrays = [cg.ones(2) for _ in range(3 if RANK else 2)]
    fails(lambda: COMM.all_reduce(arrays), ValueError, "the number of arrays is 3 on rank 1 and 2 on rank 0")
    fails(lambda: COMM.all_reduce(cg.ones(2), inplace=RANK == 0), ValueError, "inplace is False on rank 1 and True on")
    fails(lambda: COMM.bcast(cg.ones(2), root=RANK), ValueError, "bcast: root is 1 on rank 1 and 0 on rank 0")


def check_calls():
    x = cg.ones(2)
    fails(lambda: COMM.bcast(x) if RANK else COMM.all_reduce(x), RuntimeError, "rank 0 calls all_reduce, and rank 1 "
          "calls bcast; all ranks must make the same calls in the same order")
    fails(COMM.barrier if RANK else lambda: COMM.all_reduce([]), RuntimeError, "rank 1 calls barrier")


def check_a_dense_gradient_and_a_slice():
    x = cg.GradientSlice([0], [[1.0]], (3, 1)) if RANK else cg.zeros((3, 1))
    fails(lambda: COMM.all_reduce([x]), ValueError, "arrays[0] is a float32 GradientSlice of shape (3, 1) on rank 1")


def check_an_error_of_one_rank():
    """It is that of the rank itself; the others name it."""
    kind = TypeError if RANK == LAST else RuntimeError
    fails(lambda: COMM.all_reduce([cg.ones(2) if RANK < LAST else 3]), kind, "arrays[0] must be a tensor, got 3")
    x = cg.ones(1000)

    def without_memory():
        if RANK: return COMM.all_reduce([x])
        with cg.testing.fail_allocation(1): return COMM.all_reduce([x])

    fails(without_memory, RuntimeError if RANK else MemoryError)
    assert x.tolist() == [1] * 1000


def check_solvers():
    fails(lambda: cg.comm.ShardedSolver(cg.optim.Sgd({"w": cg.ones(2 + RANK).attach_grad()}, lr=1.0), COMM), ValueError,
          "ShardedSolver: parameters[0] is 'w', float32 (3,) on rank 1 and 'w', float32 (2,) on rank 0")
    w = cg.ones(2).attach_grad()
    solver = cg.comm.ShardedSolver(cg.optim.Adam({"w": w}), COMM)
    w.fresh_grad = RANK == 0
    fails(solver.update, ValueError, "update: parameters[0] is 'w', not reached on rank 1 and 'w', reached on rank 0")
    state = solver.state_dict()
    if RANK: state["state"]["w"]["step"] = -1
    fails(lambda: solver.load_state_dict(state), ValueError if RANK else RuntimeError, "the state of 'w' must have")
    fails(lambda: solver.set_parameters("w" if RANK else [w]), TypeError if RANK else RuntimeError, "set_parameters")


if __name__ == "__main__": main(globals())
