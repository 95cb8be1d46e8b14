"""Gradients that are summed while backward runs."""

import time

import numpy as np
from common import COMM, RANK, SIZE, main, raised, random, same, same_on_all_ranks, summed

import cygrad as cg

LAST = SIZE - 1


def variables(*shapes, **options):
    return [cg.ones(shape).attach_grad(**options) for shape in shapes]


def backward(scope, loss):
    with scope:
        with cg.record(): y = loss()
        y.backward()


def check_sums():
    """Any size of packs: the bits of all_reduce. The scope is used again."""
    shapes = [(3, 4), (5,), (), (100,), (2, 2)]
    parts = [[random(shape, 100 * r + k) for k, shape in enumerate(shapes)] for r in range(SIZE)]
    constants = [cg.tensor(p) for p in parts[RANK]]
    for size in (1, 7, 30, 1000):
        for division, scale in ((False, None), (True, 0.5)):
            w = variables(*shapes)
            scope = COMM.all_reduce_callback(w, size, division=division, scale_grad=scale)
            for _ in range(2):
                backward(scope, lambda w=w: sum((x * c).sum() for x, c in zip(w, constants, strict=True)))
                for k, x in enumerate(w):
                    wanted = summed([p[k] for p in parts], SIZE if division else 1)
                    assert same(x.grad, wanted if scale is None else wanted * np.float32(scale)) and x.fresh_grad
            assert scope.reduced == len(scope.packs)
    assert [len(p) for p in COMM.all_reduce_callback(w, 12).packs] == [1, 1, 2, 1]


class Wait(cg.autograd.Function):
    """y = x; backward waits until the scope has summed a pack."""

    @staticmethod
    def forward(ctx, x):
        return x.copy()

    @staticmethod
    def backward(ctx, g):
        end = time.monotonic() + 8
        while not Wait.scope.reduced and time.monotonic() < end: time.sleep(1e-3)
        Wait.events.append(f"backward goes on, {Wait.scope.reduced} packs summed")
        return g


def check_packs_are_summed_while_backward_runs():
    """The backward of the first layer waits until the pack of the last one is summed."""
    if SIZE == 1: return                            # nothing to overlap
    first, last = variables((4,), (4,))
    scope = COMM.all_reduce_callback([first, last], 4)
    Wait.events, Wait.scope = [], scope
    handle = first.register_post_accumulate_grad_hook(lambda x: Wait.events.append("the first layer"))
    with scope:
        with cg.record(): y = (Wait.apply(first * 2) * last).sum()
        y.backward()
        Wait.events.append("backward has ended")
    Wait.events.append(f"{scope.reduced} packs summed")
    handle.remove()
    assert Wait.events == ["backward goes on, 1 packs summed", "the first layer", "backward has ended",
                           "2 packs summed"], Wait.events
    assert first.grad.tolist() == [2 * SIZE] * 4 and last.grad.tolist() == [2 * SIZE] * 4
    Wait.scope = None


def check_unreached():
    """A variable that no rank reached stays as it was; one that some rank reached is reached on all."""
    for none in (False, True):
        w, idle, late = variables((3,), (2,), (2,))
        if none: late.grad = idle.grad = None
        scope = COMM.all_reduce_callback([w, idle, late], 4)
        backward(scope, lambda w=w, late=late: w.sum() + (3 * late.sum() if RANK == LAST else 0))
        assert not idle.fresh_grad and (idle.grad is None if none else idle.grad.tolist() == [0, 0])
        assert late.fresh_grad and late.grad.tolist() == [3, 3] and w.grad.tolist() == [SIZE] * 3


def check_passes_before_the_scope():
    """What earlier passes have added is summed too, also if the last one does not reach the variable."""
    w, early = variables((2,), (2,), grad_req="add")
    with cg.record(): y = (w * early).sum()
    y.backward()
    backward(COMM.all_reduce_callback([w, early], 100), lambda: w.sum() * (1 + RANK))
    assert early.grad.tolist() == [SIZE] * 2 and w.grad.tolist() == [SIZE + sum(range(1, SIZE + 1))] * 2


def check_slices():
    """Row-sparse on all ranks: a slice. Dense on one: a tensor. Some ranks without a gradient."""
    rows = cg.tensor(random((6, 2), 5))
    for kind in ("sparse", "mixed", "one"):
        w = cg.tensor(rows.numpy()).attach_grad(stype="row_sparse")
        other = variables((3,))[0]
        if kind == "mixed" and RANK == 0: w = cg.tensor(rows.numpy()).attach_grad()
        scope = COMM.all_reduce_callback([w, other], 4, scale_grad=2.0)

        def loss(w=w, other=other, kind=kind):
            if kind == "one" and RANK != LAST: return other.sum()
            if kind == "mixed" and RANK == 0: return (w * 1.0).sum() + other.sum()
            return cg.embedding(np.array([RANK, 5, 5]), w, sparse=True).sum() + other.sum()

        backward(scope, loss)
        wanted = np.zeros((6, 2), "f4")
        for r in range(SIZE):
            if kind == "one" and r != LAST: continue
            if kind == "mixed" and r == 0: wanted += 1
            else: np.add.at(wanted, [r, 5, 5], 1)
        g = w.grad
        assert isinstance(g, cg.Tensor) == (kind == "mixed" and (SIZE > 1 or RANK == 0)), (kind, g)
        dense = cg.ensure_dense(g)
        assert same(dense, 2 * wanted), (kind, dense, wanted)
        assert same_on_all_ranks(dense) and other.grad.tolist() == [2 * SIZE] * 3 and w.fresh_grad
        del g


def check_gradients_that_are_not_contiguous():
    w = cg.ones((3, 4)).attach_grad()
    w.grad = cg.zeros((4, 3)).T
    g = w.grad
    with COMM.all_reduce_callback([w], 5):
        with cg.record(): y = (w * (RANK + 1.0)).sum()
        y.backward()
    assert w.grad.tolist() == [[sum(range(1, SIZE + 1))] * 4] * 3
    del g


def fails(make, kinds, *words):
    """In rank order: kinds[0] on rank LAST, kinds[1] on the others. The next scope works."""
    text = raised(make, kinds[RANK != LAST])
    for word in words: assert word in text, text
    w = variables((2,))
    backward(COMM.all_reduce_callback(w, 3), lambda: w[0].sum())
    assert w[0].grad.tolist() == [SIZE] * 2


def check_a_backward_that_fails():
    """On one rank, before or after its first pack: the others raise too, and no rank waits."""
    for stop in (0, 1):
        w = variables((3,), (3,))

        def fail(g):
            raise ValueError("wrong")

        def step(w=w, stop=stop, fail=fail):
            with COMM.all_reduce_callback(w, 3):
                with cg.record(): y = (cg.exp(w[0]) * w[1]).sum()
                handle = w[stop].register_hook(fail) if RANK == LAST else None
                try: y.backward()
                finally: handle and handle.remove()

        fails(step, (ValueError, RuntimeError), "wrong")
        for x in w: x.zero_grad()

    def body():
        with COMM.all_reduce_callback(w, 3):
            with cg.record(): y = w[0].sum() + w[1].sum()
            y.backward()
            if RANK == LAST: raise KeyError("after backward")

    fails(body, (KeyError, RuntimeError), "after backward")


def check_a_second_backward():
    w = variables((2,))

    def twice():
        with COMM.all_reduce_callback(w, 3):
            for _ in range(2):
                with cg.record(): y = w[0].sum()
                y.backward()

    fails(twice, (RuntimeError, RuntimeError), "a second backward pass in one scope reached arrays[0]")
    w[0].zero_grad()

    def graph():
        with COMM.all_reduce_callback(w, 3):
            with cg.record(): y = (w[0] * w[0]).sum()
            cg.backward(y, create_graph=True)

    fails(graph, (RuntimeError, RuntimeError), "has a graph")
    w[0].grad = None


def check_arguments_that_differ():
    w = variables((2,), (3,))
    for make, words in ((lambda: COMM.all_reduce_callback(w, 3 + RANK), "pack_size is 4 on rank 1 and 3 on rank 0"),
                        (lambda: COMM.all_reduce_callback(w[:2 - (RANK == 1)], 3), "the number of arrays is 1 on rank"),
                        (lambda: COMM.all_reduce_callback(w, 3, scale_grad=RANK), "scale_grad is 1.0 on rank 1")):
        if SIZE > 1: fails(lambda make=make: make().__enter__(), (ValueError, ValueError), words)
    if SIZE > 1 and RANK == 1: w[1].attach_grad("null")
    if SIZE > 1: fails(lambda: COMM.all_reduce_callback(w, 3).__enter__(), (ValueError, ValueError), "frozen")


def check_an_open_scope():
    w = variables((2,))
    scope = COMM.all_reduce_callback(w, 3)
    with scope:
        for again in (scope, COMM.all_reduce_callback(w, 3)):
            assert "open already" in raised(again.__enter__, RuntimeError)
        with cg.record(): y = w[0].sum()
        y.backward()
    assert w[0].grad.tolist() == [SIZE] * 2


def check_memory():
    """Beside the gradients, a scope holds two packs."""
    w = variables(*[(1000,)] * 8)
    scope = COMM.all_reduce_callback(w, 1000)
    cg.memory.reset_peak()
    before = cg.memory.stats()["live_bytes"]
    with scope: inside = cg.memory.stats()["live_bytes"] - before
    assert inside <= 8200


if __name__ == "__main__": main(globals())
