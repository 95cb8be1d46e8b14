"""GradientSlice: row-sparse gradients as values, in .grad, in sums, in hooks, in solvers, in pickles."""

import copy
import gc
import pickle
from threading import Thread

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak

INDICES = np.array([3, 0, 3, -1])
WANTED = np.zeros((5, 2), "float32")
np.add.at(WANTED, INDICES, 1)


def table(**how):
    x = cg.tensor(np.arange(10, dtype="float32").reshape(5, 2))
    return x.attach_grad(**how) if how else x.requires_grad_()


def backward(w, indices=INDICES, factor=1.0, sparse=True):
    with cg.record():
        y = cg.embedding(indices, w, sparse=sparse) * factor
    y.backward()


def slice_of(indices=(3, 0, 3), shape=(5, 2), dtype="float32"):
    values = np.arange(2 * len(indices), dtype=dtype).reshape(-1, 2) + 1
    return cg.GradientSlice(np.array(indices, int), values, shape)


def same(g, wanted):
    assert np.array_equal(cg.ensure_dense(g).numpy(), wanted)


# ---- the class -------------------------------------------------------------------------------------------------------

def test_to_dense_adds_the_rows():
    g = slice_of()
    same(g, [[3, 4], [0, 0], [0, 0], [6, 8], [0, 0]])
    assert g.shape == (5, 2) and g.dtype == np.float32 and len(g) == 3 and g.nbytes == 3 * 8 + 6 * 4


@pytest.mark.parametrize("op, row", [("sum", [6, 8]), ("mean", [3, 4])])
def test_deduplicate(op, row):
    g = slice_of().deduplicate(op)
    assert g.indices.tolist() == [0, 3] and g.values.tolist() == [[3, 4], row] and g.shape == (5, 2)


@pytest.mark.parametrize("n, rows", [(0, 5), (1, 1), (7, 3), (1000, 40), (3000, 5000), (5000, 10 ** 7)])
def test_deduplicate_is_numpys_unique(n, rows):
    rng = np.random.default_rng(n)
    indices, values = rng.integers(0, rows, n), rng.normal(size=(n, 3))
    for shape in (None, (rows, 3)):
        g = cg.GradientSlice(indices, values, shape).deduplicate()
        unique, inverse = np.unique(indices, return_inverse=True)
        sums = np.zeros((len(unique), 3))
        np.add.at(sums, inverse, values)
        assert np.array_equal(g.indices.numpy(), unique) and np.array_equal(g.values.numpy(), sums)


def test_strided_parts():
    indices = cg.tensor(np.arange(10))[::-2]
    values = cg.tensor(np.arange(10.0)).reshape(2, 5).T
    g = cg.GradientSlice(indices, values, (10, 2))
    wanted = np.zeros((10, 2))
    wanted[indices.numpy()] = values.numpy()
    same(g, wanted)
    same(g.deduplicate(), wanted)


def test_a_slice_without_rows_to_count():
    g = cg.GradientSlice([2, 0], [[1.0], [2.0]])
    assert g.shape is None
    same(g.to_dense((3, 1)), [[2], [0], [1]])
    with pytest.raises(IndexError):
        g.to_dense((2, 1))


def test_its_memory_counts_as_gradients():
    with assert_no_leak():
        before = cg.memory.stats()["by_category"]["gradients"]
        indices, values = cg.zeros(4, dtype="int64"), cg.ones((4, 2))
        g = cg.GradientSlice(indices, values)
        assert cg.memory.stats()["by_category"]["gradients"] - before == 4 * 8 + 8 * 4
        del g
        assert cg.memory.stats()["by_category"]["gradients"] == before
        del indices, values


def test_pickle_and_copies():
    g = slice_of()
    for other in (pickle.loads(pickle.dumps(g)), copy.copy(g), copy.deepcopy(g), g.copy()):
        assert other.shape == (5, 2) and other.values is not g.values
        same(other, g.to_dense().numpy())
        g.values[0, 0] += 1                         # an independent copy
        assert not np.array_equal(other.values.numpy(), g.values.numpy())
        g.values[0, 0] -= 1


def test_repr_is_an_expression():
    """One line, or one line for each argument, with the lines of a tensor below each other."""
    one = cg.GradientSlice(cg.tensor([1]), cg.tensor([[1.0, 2.0]]), (5, 2))
    two = cg.GradientSlice(cg.tensor([1, 3]), cg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert repr(one) == "GradientSlice(indices=tensor([1]), values=tensor([[1., 2.]]), shape=(5, 2))"
    assert repr(two) == ("GradientSlice(indices=tensor([1, 3]),\n"
                         "              values=tensor([[1., 2.],\n"
                         "                             [3., 4.]]))")
    for g in (one, two, cg.GradientSlice(two.indices, two.values, (5, 2))):
        again = eval(repr(g), {"GradientSlice": cg.GradientSlice, "tensor": cg.tensor})
        assert again.shape == g.shape and again.indices.tolist() == g.indices.tolist()
        assert again.values.tolist() == g.values.tolist()


def test_indices_that_were_overwritten_are_refused():
    g = slice_of()
    g.indices[0] = 7
    for f in (g.to_dense, g.deduplicate):
        with pytest.raises(IndexError, match="the index 7 is out of range"):
            f()
    w = table()
    w.grad = slice_of()
    w.fresh_grad = True
    w.grad.indices[0] = -1
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters(w)
    with pytest.raises(IndexError, match="the index -1 is out of range"):
        solver.update()


# ---- .grad -----------------------------------------------------------------------------------------------------------

def test_into_none():
    w = table()
    backward(w)
    assert isinstance(w.grad, cg.GradientSlice) and w.fresh_grad
    assert w.grad.indices.tolist() == [3, 0, 3, 4] and w.grad.shape == w.shape
    same(w.grad, WANTED)


def test_the_same_numbers_as_dense():
    w = table()
    backward(w, factor=0.3)
    sparse, w.grad = w.grad.to_dense().numpy(), None
    backward(w, factor=0.3, sparse=False)
    assert np.array_equal(w.grad.numpy(), sparse)


@pytest.mark.parametrize("how", [{}, {"stype": "row_sparse", "grad_req": "add"}])
def test_add(how):
    w = table(**how)
    backward(w)
    backward(w)
    assert len(w.grad) == 8
    same(w.grad, 2 * WANTED)


def test_write_replaces_the_slice():
    w = table(stype="row_sparse")
    assert isinstance(w.grad, cg.GradientSlice) and len(w.grad) == 0 and not w.fresh_grad
    backward(w)
    backward(w, factor=2.0)
    assert len(w.grad) == 4
    same(w.grad, 2 * WANTED)


def test_stype_needs_no_argument():
    w = table(stype="row_sparse")
    backward(w, sparse=False)
    assert isinstance(w.grad, cg.GradientSlice)
    w.attach_grad()
    assert isinstance(w.grad, cg.Tensor)
    backward(w, sparse=False)
    same(w.grad, WANTED)


def test_two_lookups_in_one_pass():
    w = table(stype="row_sparse")
    for _ in range(2):
        with cg.record():
            y = cg.embedding(INDICES, w).sum() + 2 * cg.embedding([1], w).sum()
        y.backward()
        assert len(w.grad) == 5
        wanted = WANTED.copy()
        wanted[1] += 2
        same(w.grad, wanted)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("how", [{}, {"stype": "row_sparse"}])
def test_a_dense_contribution_makes_it_a_tensor(how, order):
    w = table(**how)
    for _ in range(2):
        with cg.record():
            terms = [lambda: (w * 3).sum(), lambda: cg.embedding(INDICES, w, sparse=True).sum()][::order]
            y = terms[0]() + terms[1]()
        y.backward()
        assert isinstance(w.grad, cg.Tensor)
    same(w.grad, (WANTED + 3) * (1 if how else 2))
    backward(w)
    assert isinstance(w.grad, cg.GradientSlice if how else cg.Tensor)       # "write", and a slice was asked for


def test_rows_into_an_existing_tensor():
    w = table(grad_req="write")
    for _ in range(2):
        backward(w)
        same(w.grad, WANTED)
    given = cg.zeros((2, 5)).T
    cg.mark_variables(w, given, "add")
    backward(w)
    backward(w)
    assert w.grad is given
    same(given, 2 * WANTED)


def test_a_dense_pass_after_a_sparse_one():
    w = table()
    backward(w)
    backward(w, sparse=False)
    same(w.grad, 2 * WANTED)
    assert isinstance(w.grad, cg.Tensor)


def test_zero_grad_drop_grad_and_assignment():
    w = table(stype="row_sparse")
    backward(w)
    w.zero_grad()
    assert len(w.grad) == 0 and not w.fresh_grad
    w.grad = slice_of()
    same(w.grad, slice_of().to_dense().numpy())
    w.grad = cg.ones((5, 2))
    w.zero_grad()
    assert isinstance(w.grad, cg.GradientSlice)
    w.drop_grad()
    assert w.grad is None
    w.requires_grad_()
    w.grad = cg.GradientSlice([1], np.ones((1, 2), "float32"))
    assert w.grad.shape == (5, 2)
    del w.grad
    assert w.grad is None


def test_of_a_result_it_is_dense():
    w = table()
    with cg.record():
        h = w * 2
        h.retain_grad()
        y = cg.embedding(INDICES, h, sparse=True)
    y.backward()
    same(h.grad, WANTED)
    same(w.grad, 2 * WANTED)
    assert isinstance(w.grad, cg.Tensor) and isinstance(h.grad, cg.Tensor)


def test_autograd_grad():
    w = table()
    with cg.record():
        y = cg.embedding(INDICES, w, sparse=True)
        both = y.sum() + w.sum()
        twice = y.sum() + cg.embedding([0], w, sparse=True).sum()
    g = cg.autograd.grad(y, w, retain_graph=True)
    assert isinstance(g, cg.GradientSlice) and w.grad is None
    same(g, WANTED)
    same(cg.autograd.grad(both, w, retain_graph=True), WANTED + 1)
    g = cg.autograd.grad(twice, w, retain_graph=True)
    assert isinstance(g, cg.GradientSlice) and len(g) == 5
    g = cg.autograd.grad(y, w, create_graph=True)
    assert isinstance(g, cg.Tensor)


@pytest.mark.parametrize("how", [{}, {"stype": "row_sparse"}])
def test_create_graph_makes_a_tensor(how):
    w = table(**how)
    with cg.record():
        y = (cg.embedding(INDICES, w, sparse=True) ** 2).sum()
        y.backward(create_graph=True)
        assert isinstance(w.grad, cg.Tensor)
        z = (w.grad ** 2).sum()
    same(cg.autograd.grad(z, w), 8 * w.detach().numpy() * WANTED ** 2)


def test_create_graph_adds_to_a_slice():
    w = table()
    backward(w)
    with cg.record():
        (cg.embedding(INDICES, w, sparse=True) ** 2).sum().backward(create_graph=True)
    same(w.grad.detach(), WANTED + 2 * w.detach().numpy() * WANTED)
    backward(w)
    same(w.grad.detach(), 2 * WANTED + 2 * w.detach().numpy() * WANTED)


def test_head_and_grad_share_no_memory():
    w, head = table(), cg.ones((4, 2))
    with cg.record():
        y = cg.embedding(INDICES, w, sparse=True)
    y.backward(head)
    head[...] = 5
    same(w.grad, WANTED)


def test_gradient_collector():
    w = table()
    backward(w)
    with cg.GradientCollector() as gc_:
        for _ in range(2):
            gc_.backward(cg.embedding(INDICES, w, sparse=True).sum())
        same(w.grad, 2 * WANTED)
        gc_.zero_gradients()
        assert len(w.grad) == 0


def test_scopes_leave_it_alone():
    w = table()
    with cg.memory.scope():
        backward(w)
    same(w.grad, WANTED)


def test_memory_is_released():
    w = table()
    with assert_no_leak():
        backward(w)
        w.grad = None
    backward(w)
    assert cg.memory.stats()["by_category"]["gradients"] == w.grad.nbytes == 4 * 8 + 8 * 4


def test_a_cycle_is_collected():
    gc.collect()
    before = cg.memory.stats()["by_category"]["gradients"]
    w = table()
    values = cg.ones((1, 2)).requires_grad_()
    g = cg.GradientSlice([0], values.detach())
    g.values.requires_grad_()
    w.grad = g
    g.values.grad = cg.ones((1, 2))
    del w, g, values
    gc.collect()
    assert cg.memory.stats()["by_category"]["gradients"] == before


# ---- hooks, anomalies, pickles ---------------------------------------------------------------------------------------

def test_hooks_receive_and_replace_it():
    w, seen = table(), []
    w.register_post_accumulate_grad_hook(lambda x: seen.append(type(x.grad)))
    w.register_hook(lambda g: cg.GradientSlice(g.indices, g.values * 2, g.shape))
    backward(w)
    assert seen == [cg.GradientSlice]
    same(w.grad, 2 * WANTED)
    w.grad = None
    w.register_hook(lambda g: g.to_dense())
    backward(w)
    assert isinstance(w.grad, cg.Tensor)
    same(w.grad, 2 * WANTED)


def test_hooks_of_the_node():
    w, seen = table(), []
    with cg.record():
        y = cg.embedding(INDICES, w, sparse=True)
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
    y.backward()
    assert seen[0][0] is None and isinstance(seen[0][1], cg.GradientSlice)
    seen.clear()
    same(w.grad, WANTED)


def test_a_kept_slice_is_not_shared():
    w, seen = table(), []
    w.register_hook(seen.append)
    backward(w)
    w.grad.values[...] = 9
    same(seen[0], WANTED)


@pytest.mark.filterwarnings("ignore")
def test_detect_anomaly():
    w = table()
    with cg.autograd.detect_anomaly():
        backward(w)
        with cg.record():
            y = cg.embedding(INDICES, w * 0, sparse=True)
            z = (y / y).sum()
        with pytest.raises(RuntimeError, match="first NaN"):
            z.backward()


@pytest.mark.parametrize("how", [{}, {"stype": "row_sparse"}, {"grad_req": "write"}])
def test_saving_a_variable(how):
    w = table(**how)
    backward(w)
    loaded, shallow, deep = pickle.loads(pickle.dumps(w)), copy.copy(w), copy.deepcopy(w)
    same(deep.grad, WANTED)
    assert type(deep.grad) is type(w.grad) and deep.fresh_grad
    for other in (loaded, shallow, deep):
        assert other.grad_req == w.grad_req
        other.zero_grad()
        backward(other)
        assert type(other.grad) is type(w.grad)
        same(other.grad, WANTED)


# ---- solvers ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [0, 1, 2, 63, 64, 65, 200])
def test_sgd_is_the_dense_update(dtype, columns):
    rng = np.random.default_rng(columns)
    elements, indices = rng.normal(size=(50, columns)).astype(dtype), rng.integers(-50, 50, 90)
    found = []
    for sparse in (False, True):
        w = cg.tensor(elements).requires_grad_()
        solver = cg.optim.Sgd(0.1)
        solver.set_parameters(w)
        for _ in range(2):
            w.grad = None
            with cg.record():
                y = cg.square(cg.embedding(indices, w, sparse=sparse)).sum()
            y.backward()
            version = w.version
            solver.update()
            assert w.version == version + 1 and not w.fresh_grad
        assert isinstance(w.grad, cg.GradientSlice if sparse else cg.Tensor)
        found.append(w.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6 if dtype == "float32" else 1e-14)
    untouched = np.setdiff1d(np.arange(50), indices % 50)
    assert np.array_equal(found[1][untouched], elements[untouched])


def test_sgd_has_the_same_bits_for_any_number_of_threads(two_threads):
    rng = np.random.default_rng(0)
    elements, indices = rng.normal(size=(300, 64)).astype("float32"), rng.integers(0, 300, 5000)
    found = []
    for threads in (1, 2):
        cg.set_num_threads(threads)
        w = cg.tensor(elements).requires_grad_()
        backward(w, indices, 0.37)
        solver = cg.optim.Sgd(0.1)
        solver.set_parameters(w)
        solver.update()
        found.append((w.detach().numpy().tobytes(), w.grad.deduplicate().values.numpy().tobytes()))
    assert found[0] == found[1]


def test_other_solvers_change_nothing():
    w, v = table(), cg.ones(3).attach_grad()
    with cg.record():
        y = cg.embedding(INDICES, w, sparse=True).sum() + v.sum()
    y.backward()
    solver = cg.optim.Nesterov()
    solver.set_parameters({"v": v, "w": w})
    with pytest.raises(TypeError, match="the gradient of 'w' is a GradientSlice, and Nesterov takes only tensors"):
        solver.update()
    assert v.tolist() == [1, 1, 1] and v.fresh_grad
    w.grad = w.grad.to_dense()
    w.fresh_grad = True
    solver.update()
    assert v.tolist() != [1, 1, 1]


# ---- failing allocations, threads ------------------------------------------------------------------------------------

def test_each_failing_allocation_leaves_a_whole_gradient():
    """Backward into a slice, into a sum of two lookups, and an update: each allocation fails once."""
    with assert_no_leak():
        for n in range(1, 100):
            w = table(stype="row_sparse")
            backward(w)
            elements = np.array(w.tolist(), "float32")
            solver = cg.optim.Sgd(1.0)
            solver.set_parameters(w)
            with cg.record():
                y = cg.embedding(INDICES, w, 3).sum() + cg.embedding([0], w).sum()
            with cg.testing.fail_allocation(n) as failed:
                try:
                    y.backward()
                    solver.update()
                except MemoryError:
                    pass
            if not failed.failed:
                break
            if w.fresh_grad:
                assert np.array_equal(w.detach().numpy(), elements)
            assert isinstance(w.grad, cg.GradientSlice) and np.isfinite(w.grad.to_dense().numpy()).all()
        assert n > 5
        del w, y, solver


def test_passes_of_several_threads():
    w = table()

    def run():
        for _ in range(50):
            backward(w)

    threads = [Thread(target=run) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    same(w.grad, 200 * WANTED)
