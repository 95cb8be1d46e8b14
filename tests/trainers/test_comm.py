"""The communicator of an updater: what it receives, and parameters that only some processes reach."""

import threading

import numpy as np
import pytest


import cygrad as cg
from cygrad.trainers import DynamicLossScalingUpdater, Updater


class Summing:
    """Sums over processes that have added `other` to each array."""

    def __init__(self, other=0.0):
        self.other, self.received = other, None

    def all_reduce(self, arrays, division=False, inplace=False):
        assert type(arrays) is list and division is False and inplace is False
        self.received = [a.numpy().copy() for a in arrays]
        self.same = arrays
        for a in arrays: a += self.other


class Ranks:
    """A communicator of several threads: each array becomes the sum over the threads."""

    def __init__(self, n):
        self.barrier, self.arrays = threading.Barrier(n, timeout=20), [None] * n

    def of(self, rank):
        return Rank(self, rank)


class Rank:
    def __init__(self, ranks, rank):
        self.ranks, self.rank = ranks, rank

    def all_reduce(self, arrays, division=False, inplace=False):
        self.ranks.arrays[self.rank] = [a.numpy().copy() for a in arrays]
        self.ranks.barrier.wait()
        for a, *parts in zip(arrays, *self.ranks.arrays, strict=True): a[...] = np.sum(parts, 0)
        self.ranks.barrier.wait()


def setting(**parameters):
    variables = {name: cg.tensor(np.asarray(v, "float64")).attach_grad() for name, v in parameters.items()}
    solver = cg.optim.Sgd(lr=1.0)
    solver.set_parameters(variables)
    return solver, *variables.values()


@pytest.mark.parametrize("kind", ["variables", "gradients", "dict", "generator", "one"])
def test_grads_are_variables_or_gradient_tensors(kind):
    solver, w = setting(w=[1.0, 2.0])
    comm = Summing(10.0)
    grads = {"variables": [w], "gradients": [w.grad], "dict": {"w": w}, "generator": (x for x in [w]), "one": w}[kind]
    updater = Updater(solver, lambda: (w * w).sum(), comm=comm, grads=grads)
    updater.update(0)
    assert comm.same[0] is w.grad and comm.received[0].tolist() == [2, 4] and w.tolist() == [-11, -12]
    updater.update(1)
    assert comm.received[0].tolist() == [-22, -24] and w.tolist() == [1, 2]


def test_a_gradient_tensor_that_was_replaced():
    """`grads` had the gradient tensor. Its parameter's new one is reduced, also if the parameter came later."""
    solver, w = setting(w=[1.0])
    early = Updater(solver, lambda: w.sum(), comm=Summing(1.0), grads=[w.grad])
    w.grad = cg.zeros(1, dtype="float64")
    early.update(0)
    assert w.tolist() == [-1]
    v = cg.tensor([1.0]).attach_grad()
    late = Updater(solver, lambda: v.sum(), comm=Summing(1.0), grads=[v.grad])
    solver.set_parameters({"v": v})
    for i in range(2):
        late.update(i)
        v.grad = cg.zeros(1)
    assert v.tolist() == [-3]


def test_a_parameter_that_no_process_reached_remains_unreached():
    """sony/nnabla#510: its zeros became a gradient, and weight decay moved frozen parameters. As a variable whose .grad
    is None it gets none."""
    solver, w, idle, late = setting(w=[1.0], idle=[5.0], late=[6.0])
    late.grad = None
    comm = Summing()
    Updater(solver, lambda: w.sum(), comm=comm, grads=[w, idle.grad, late]).update(0)
    assert [a.tolist() for a in comm.received] == [[1], [0], [0]]
    assert not idle.fresh_grad and late.grad is None and not late.fresh_grad
    assert w.tolist() == [0] and idle.tolist() == [5] and late.tolist() == [6]


@pytest.mark.parametrize("given", ["variable", "gradient"])
def test_a_parameter_that_another_process_reached_is_updated(given):
    solver, w, idle, late = setting(w=[1.0], idle=[5.0], late=[6.0])
    late.grad = None
    Updater(solver, lambda: w.sum(), comm=Summing(2.0),
            grads=[w, idle if given == "variable" else idle.grad, late]).update(0)
    assert w.tolist() == [-2] and idle.tolist() == [3] and late.tolist() == [4]


def test_inf_or_nan_of_another_process_counts():
    solver, w, idle = setting(w=[1.0], idle=[5.0])
    seen = []
    updater = Updater(solver, lambda: w.sum(), comm=Summing(float("nan")), grads=[w, idle],
                      comm_callback_on_finish=lambda i: seen.append((w.fresh_grad, idle.fresh_grad)))
    updater.update(0)
    assert seen == [(True, True)] and np.isnan(idle.item())


def test_a_frozen_parameter_is_left_out():
    """Its memory is that of the weights: summing it would multiply them by the number of processes."""
    solver, w, frozen = setting(w=[1.0], frozen=[5.0])
    comm = Summing()
    updater = Updater(solver, lambda: w.sum(), comm=comm, grads=[w, frozen])
    frozen.attach_grad("null")
    updater.update(0)
    later = Updater(solver, lambda: w.sum(), comm=comm, grads=[frozen, w])
    later.update(1)
    assert len(comm.received) == 1 and frozen.tolist() == [5] and w.tolist() == [-1]


def test_a_row_sparse_gradient_is_refused_by_name():
    table = cg.ones((4, 2)).attach_grad(stype="row_sparse")
    solver = cg.optim.Sgd(lr=1.0)
    solver.set_parameters({"table": table})
    index = cg.tensor([1, 1])

    def loss():
        return cg.embedding(index, table, sparse=True).sum()

    with pytest.raises(TypeError, match=r"grads\[0\], the gradient of 'table', is a GradientSlice"):
        Updater(solver, loss, comm=Summing(), grads=[table]).update(0)
    assert table.numpy().min() == 1 and not table.fresh_grad

    def dense(i):
        table.grad = table.grad.to_dense()

    Updater(solver, loss, comm=Summing(), grads=[table], comm_callback_on_start=dense).update(0)
    assert table.tolist() == [[1, 1], [-1, -1], [1, 1], [1, 1]]
    with pytest.raises(TypeError, match="is a GradientSlice"):
        Updater(solver, loss, comm=Summing(), grads=[cg.GradientSlice(index, cg.ones((2, 2)))])


@pytest.mark.parametrize("kind", [Updater, DynamicLossScalingUpdater])
@pytest.mark.parametrize("known", [True, False])
def test_a_gradient_that_grads_has_twice_is_refused(kind, known):
    """Its sum over the processes was added twice, also in variables that the solver does not have."""
    solver, w, v = setting(w=[1.0, 2.0], v=[3.0, 4.0])
    if not known: solver.clear_parameters()
    both = cg.zeros((2, 2), dtype="float64")
    both_t, same = both.T[1], w.detach().requires_grad_()
    for grads, text in (
            ([v, w, w], r"grads\[2\] is the same tensor as grads\[1\]; each gradient is summed once"),
            ([v.grad, w, v.grad], r"grads\[2\] is the same tensor as grads\[0\]"),
            ([w, v, w.grad], r"grads\[2\] is a gradient and its variable, like grads\[0\]"),
            ([w.grad, w], r"grads\[1\] is a gradient and its variable, like grads\[0\]"),
            ([w, same], r"grads\[1\] shares memory with grads\[0\]"),
            ([w.grad, v.grad, w.grad.reshape(2)], r"grads\[2\] shares memory with grads\[0\]"),
            ([both_t, v, both[0]], r"grads\[2\] shares memory with grads\[0\]")):
        with pytest.raises(ValueError, match=text): kind(solver, lambda: w.sum(), grads=grads)
    kind(solver, lambda: w.sum(), grads=[both[0], both[1], w, v])
    kind(solver, lambda: w.sum(), grads=[both.T[0], both.T[1]])        # the ranges meet, and no element is in both


def test_gradients_that_are_shared_later():
    """One tensor that is the gradient of two variables is summed once. Two that share memory are refused."""
    solver, w, v = setting(w=[1.0, 2.0], v=[3.0, 4.0])
    w.attach_grad("add"), v.attach_grad("add")
    w.grad = v.grad = g = cg.ones(2, dtype="float64")
    comm = Summing(10.0)
    Updater(solver, lambda: w.sum() + v.sum(), comm=comm, grads=[w, v]).update(0)
    assert comm.same == [g] and comm.received[0].tolist() == [2, 2] and w.tolist() == [-11, -10]
    v.grad = g.reshape(2)
    comm.received = None
    with pytest.raises(ValueError, match=r"^Updater: grads\[1\] shares memory with grads\[0\], which would") as e:
        Updater(solver, lambda: w.sum(), comm=comm, grads=[w, v]).update(0)
    notes = e.value.__notes__
    del e
    assert "at all_reduce" in notes[0] and comm.received is None and w.tolist() == [-11, -10]


@pytest.mark.parametrize("kind", [Updater, DynamicLossScalingUpdater])
def test_two_ranks_equal_one_process_with_both_batches(kind):
    """Two threads, each with a model of its own and half of the batch. `gate` is reached by rank 1 only."""
    rng = np.random.default_rng(2)
    xs, ts = rng.normal(size=(5, 2, 3, 4)), rng.normal(size=(5, 2, 3))
    start = rng.normal(size=4)
    ranks, results, errors = Ranks(2), {}, []

    def model(rank, comm):
        w, gate = cg.tensor(start).attach_grad(), cg.tensor(0.5, "float64").attach_grad()
        solver = cg.optim.Sgd(lr=0.05)
        solver.set_parameters({"w": w, "gate": gate})
        step = iter(range(5)).__next__

        def loss(k):
            total = 0
            for r in range(2) if rank is None else (rank,):
                y = cg.tensor(xs[k, r]) @ w
                total = total + ((y * gate if r else y) - cg.tensor(ts[k, r])).square().sum()
            return total

        updater = kind(solver, loss, step, comm=comm, grads=[w, gate])
        for i in range(5): updater.update(i)
        return w.numpy().copy(), gate.numpy().copy()

    def run(rank):
        try: results[rank] = model(rank, ranks.of(rank))
        except BaseException as e:
            errors.append(e)
            ranks.barrier.abort()

    threads = [threading.Thread(target=run, args=(r,)) for r in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not errors
    whole = model(None, None)
    for name in range(2):
        assert results[0][name].tobytes() == results[1][name].tobytes()     # the replicas do not drift apart
        np.testing.assert_allclose(results[0][name], whole[name], 1e-12)
