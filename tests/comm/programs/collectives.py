"""all_reduce, bcast, reduce_scatter, all_gather and barrier."""

import numpy as np
from common import COMM, RANK, SIZE, main, random, same, same_on_all_ranks, summed

import cygrad as cg
import cygrad.comm.communicator as communicator

SHAPES = [(3, 4), (), (0, 2), (1000,), (7, 1, 5), (2,)]


def numbers(dtype):
    """[arrays of each rank] for each shape."""
    return [[random(shape, 10 * k + r, dtype) for r in range(SIZE)] for k, shape in enumerate(SHAPES)]


def sums(inplace, division=False):
    """The sums of arrays of two dtypes, in turns."""
    parts = [p for pair in zip(numbers("float32"), numbers("float64"), strict=True) for p in pair]
    tensors = [cg.tensor(p[RANK]) for p in parts]
    versions = [x.version for x in tensors]
    assert COMM.all_reduce(tensors, division=division, inplace=inplace) == tensors
    for x, p, version in zip(tensors, parts, versions, strict=True):
        assert same(x, summed(p, SIZE if division else 1)), x.shape
        assert x.version > version or x.size == 0 or SIZE == 1
    return [x.numpy().tobytes() for x in tensors]


def check_sums_in_the_order_of_the_ranks():
    """A gradient tensor, packed or not, in segments of any length: the same bits."""
    wanted, before = sums(False), communicator.SEGMENT
    assert sums(True) == wanted
    for communicator.SEGMENT in (8, 40, 4096):
        assert sums(False) == sums(True) == wanted
    communicator.SEGMENT = before


def check_division():
    sums(False, True)
    sums(True, True)


def check_special_values_do_not_warn():
    x = cg.tensor([3e38, float("inf"), float("nan"), -0.0])
    COMM.all_reduce(x)
    assert same_on_all_ranks(x) and np.isnan(x[2].item()) and np.isinf(x[1].item())


def check_integers():
    x, y = cg.tensor(np.array([RANK, 2**40])), cg.tensor(np.array([200], "uint8"))
    COMM.all_reduce([x, y])
    assert x.tolist() == [sum(range(SIZE)), SIZE * 2**40] and y.tolist() == [200 * SIZE % 256]


def check_tensors_that_are_not_contiguous():
    parts = [random((4, 6), r) for r in range(SIZE)]
    for inplace in (False, True):
        base = cg.tensor(parts[RANK])
        rows, columns = base[1:3].T, base[0, ::2]
        COMM.all_reduce([rows, columns], inplace=inplace)
        total = summed(parts)
        assert same(rows, total[1:3].T) and same(columns, total[0, ::2])
        assert base[3].tolist() == parts[RANK][3].tolist()      # the others keep their values
        COMM.bcast([rows], SIZE - 1)
        assert same_on_all_ranks(rows.copy())
        del rows, columns, base


def check_gradients_and_variables():
    """A variable's data can be written too. Gradients that are zeros have no memory before."""
    w = cg.ones(3).attach_grad()
    COMM.all_reduce([w, w.grad])
    assert w.tolist() == [SIZE] * 3 and w.grad.tolist() == [0] * 3 and not w.fresh_grad
    with cg.record():
        y = (w * w).sum()
        saved = w.version
        COMM.all_reduce([w])                        # also while recording: a write, not an operation
    if SIZE > 1:
        assert w.version > saved
        try: y.backward()
        except cg.InplaceError: return
        raise AssertionError("backward used a written tensor")


def check_slices():
    """The rows of all ranks, those of equal index added in the order of the ranks."""
    rows = [random((4, 3), r) for r in range(SIZE)]
    indices = [[5, r, 5, 2 * r] for r in range(SIZE)]
    dense = cg.GradientSlice(indices[RANK], rows[RANK], (9, 3)).to_dense()
    COMM.all_reduce([dense])
    x = cg.ones(2)
    for division in (False, True):
        given = cg.GradientSlice(indices[RANK], rows[RANK], (9, 3))
        total, _ = COMM.all_reduce([given, x], division=division)
        assert total.indices.tolist() == sorted({i for some in indices for i in some}) and len(given) == 4
        wanted = np.zeros((9, 3), "float32")
        for i, row in ((i, row) for some, part in zip(indices, rows, strict=True)
                       for i, row in zip(some, part, strict=True)): wanted[i] += row
        wanted = wanted / np.float32(SIZE) if division else wanted
        assert same(total.to_dense(), wanted) and same_on_all_ranks(total.indices, total.values)
        if not division: np.testing.assert_allclose(dense.numpy(), wanted, rtol=1e-3)
    [empty] = COMM.all_reduce([cg.GradientSlice([], np.empty((0, 2), "float32"), (3, 2))])
    [one] = COMM.all_reduce([cg.GradientSlice([0] * RANK, np.ones((RANK, 2)))])
    assert len(empty) == 0 and one.to_dense((1, 2)).tolist() == ([[sum(range(SIZE))] * 2] if SIZE > 1 else [[0, 0]])
    [root] = COMM.bcast([cg.GradientSlice(indices[RANK], rows[RANK], (9, 3))], SIZE - 1)
    assert root.indices.tolist() == indices[-1] and same(root.values, rows[-1])


def check_bcast():
    for root in range(SIZE):
        for inplace in (False, True):
            parts = [random((1000,), r) for r in range(SIZE)]
            x, n, flags = cg.tensor(parts[RANK]), cg.tensor(np.arange(3) + RANK), cg.full((2, 2), RANK)
            before = x.version
            COMM.bcast({"x": x, "n": n, "flags": flags}, root=root, inplace=inplace)
            assert same(x, parts[root]) and n.tolist() == [root, root + 1, root + 2] and flags[0, 0].item() == root
            assert (x.version > before) == (RANK != root)


def check_reduce_scatter_and_all_gather():
    before = communicator.SEGMENT
    for communicator.SEGMENT in (before, 64):
        parts = [[random((5, 9), 10 * r + k) for k in range(SIZE)] for r in range(SIZE)]
        for division in (False, True):
            out = cg.zeros((5, 9))
            COMM.reduce_scatter([cg.tensor(x) for x in parts[RANK]], out, division=division)
            assert same(out, summed([p[RANK] for p in parts], SIZE if division else 1))
        outs = [cg.zeros((9, 5)).T for _ in range(SIZE)]
        COMM.all_gather(cg.tensor(parts[RANK][0]), outs)
        assert all(same(x.copy(), p[0]) for x, p in zip(outs, parts, strict=True))
        del outs
    communicator.SEGMENT = before


def check_a_communicator_of_mpi4py():
    """Each rank by itself, and pairs in reverse."""
    if SIZE == 1: return
    from mpi4py import MPI

    alone = cg.comm.Communicator(MPI.COMM_SELF)
    x = cg.tensor([1.0 + RANK])
    alone.all_reduce(x)
    assert (alone.rank, alone.size, x.tolist()) == (0, 1, [1.0 + RANK])
    back = cg.comm.Communicator(MPI.COMM_WORLD.Split(0, -RANK))
    assert back.rank == SIZE - 1 - RANK
    back.bcast(x, 0)
    assert x.tolist() == [SIZE]


def check_barrier():
    for _ in range(100): COMM.barrier()


if __name__ == "__main__": main(globals())
