"""Writes in place through views, recorded: contract 5. The rest is tests/test_against_torch.py, by random programs."""

import numpy as np
import pytest

import cygrad as cg


def leaf(*values):
    return cg.tensor(list(values), dtype="float64").attach_grad()


def gradient(f, *leaves):
    with cg.record():
        y = f(*leaves)
    return [g.tolist() for g in cg.autograd.grad(y, list(leaves))]


def test_write_through_a_view_reaches_the_whole_and_its_other_views():
    def f(x, w):
        y = x * 1
        before, part = y[2:], y[1:3]
        part *= w                                   # y is [x0, w0 x1, w1 x2, x3]
        assert y.tolist() == [1, 2 * 5, 3 * 7, 4] and part.requires_grad
        return (y * y).sum() + before.sum()         # before is [w1 x2, x3]

    x, w = leaf(1, 2, 3, 4), leaf(5, 7)
    assert gradient(f, x, w) == [[2, 2 * 2 * 25, 2 * 3 * 49 + 7, 2 * 4 + 1], [2 * 5 * 4, 2 * 7 * 9 + 3]]


def test_write_to_the_whole_reaches_its_views():
    def f(x):
        y = x * 1
        rows = y.reshape(2, 2)
        corner = rows.T[1]
        y *= 3
        return (corner * corner).sum()              # (3 x1)^2 + (3 x3)^2

    assert gradient(f, leaf(1, 2, 3, 4)) == [[0, 36, 0, 72]]


def test_views_of_views_and_steps_backwards():
    def f(x):
        y = x * 1
        part = y.reshape(2, 3)[:, ::-1][1]          # x5, x4, x3
        part[:2] *= x[:2]
        return (y * cg.tensor([1.0, 2, 3, 4, 5, 6], dtype="float64")).sum()

    # x5 becomes x5 x0, x4 becomes x4 x1
    assert gradient(f, leaf(1, 2, 3, 4, 5, 6)) == [[1 + 6 * 6, 2 + 5 * 5, 3, 4, 5 * 2, 6 * 1]]


def test_a_view_that_repeats_elements_is_summed():
    def f(x):
        y = x * 1
        wide = cg.broadcast_to(y[:1], (3,))
        y *= 2
        return (wide * cg.tensor([1.0, 2, 3], dtype="float64")).sum()

    assert gradient(f, leaf(1, 2)) == [[12, 0]]


@pytest.mark.parametrize("through", ["whole", "view", "item"])
def test_plain_memory_takes_recorded_values(through):
    x = leaf(3.0)
    p = cg.zeros(2, dtype="float64")
    v = p[0:1]
    with cg.record():
        if through == "view":
            v += x
        elif through == "item":
            p[0] = x[0]
        else:
            p += x
        assert p.requires_grad and not p.is_leaf
        y = (p * v).sum() if through != "whole" else (v * x).sum()
    y.backward()
    assert x.grad.tolist() == [6.0]                 # x^2 in each
    assert p.detach().tolist() == [3.0, 3.0 if through == "whole" else 0.0]


def test_loop_that_fills_a_plain_tensor():
    x = leaf(1, 2, 3)
    out = cg.zeros((3, 2), dtype="float64")
    with cg.record():
        for i in range(3):
            out[i] = x[i] * cg.tensor([1.0, 10.0], dtype="float64")
            out[i] += x[i]
        y = (out * out).sum()
    y.backward()
    assert x.grad.tolist() == [2 * v * (4 + 121) for v in (1, 2, 3)]


def test_adding_to_a_part_is_one_write():
    x = leaf(1, 2, 3)
    with cg.record() as tape:
        y = x * 1
        before = tape.nodes
        y[1:] += x[:2]                              # two views, the sum, its place in the whole
        assert tape.nodes == before + 4 and y.version == 1
        z = (y * y).sum()
    z.backward()
    assert x.grad.tolist() == [2 + 2 * 3, 2 * 3 + 2 * 5, 2 * 5]
    p = cg.zeros(3)
    p[1] += 2.0
    p[0] = p[1]
    assert p.tolist() == [2, 2, 0] and p.version == 2


def test_second_derivative_through_a_written_view():
    x = leaf(1, 2, 3)
    with cg.record():
        y = x * x
        v = y[1:]
        v *= x[:2]                                  # y = x0^2, x1^2 x0, x2^2 x1
        z = (y * y).sum()
    g = cg.autograd.grad(z, x, create_graph=True)
    with cg.record():
        s = (g * g).sum()
    h = cg.autograd.grad(s, x)

    def first(a):
        a0, a1, a2 = a
        return np.array([4 * a0**3 + 2 * a1**4 * a0, 4 * a1**3 * a0**2 + 2 * a2**4 * a1, 4 * a2**3 * a1**2])

    a = np.array([1.0, 2, 3])
    np.testing.assert_allclose(g.detach().numpy(), first(a))
    step = 1e-6
    expected = [((first(a + d) ** 2).sum() - (first(a - d) ** 2).sum()) / (2 * step) for d in step * np.eye(3)]
    np.testing.assert_allclose(h.numpy(), expected, rtol=1e-6)


def test_what_was_saved_before_a_write_to_a_sibling_view():
    x = leaf(1, 2)
    with cg.record():
        y = x * 1
        a, b = y[:1], y[1:]
        z = a * a
        b += 1                                      # another part of the same memory, whose versions are one
    with pytest.raises(cg.InplaceError, match="mul kept a tensor .* at version 0, but it has .* at version 1"):
        z.backward()


def test_detached_memory_is_apart():
    x = leaf(1, 2)
    with cg.record():
        y = x * 2
        d, e = y.detach(), y.detach()[:1]
        for stranger in (d, e):
            with pytest.raises(cg.InplaceError, match="is detached, by detach.* write to a copy"):
                stranger += x[:1]
        y *= 3                                      # their values change, their place does not
        assert not d.requires_grad and not e.requires_grad
        z = (y * d).sum()
    z.backward()
    assert x.grad.tolist() == [6 * 6, 6 * 12]


def test_views_taken_while_paused_are_detached():
    x = leaf(1, 2)
    with cg.record():
        y = x * 2
        with cg.pause():
            v = y[:1]
        y *= 3
        z = (v * y).sum()
    assert not v.requires_grad
    z.backward()
    assert x.grad.tolist() == [6 * 6, 6 * 6]


def test_detached_memory_of_nobody_else_may_take_a_graph():
    x = leaf(1, 2)
    d = (x * 2).detach()
    with cg.record():
        d += x
        z = (d * d).sum()
    z.backward()
    assert x.grad.tolist() == [2 * 3, 2 * 6]


def test_stale_tensors_answer_for_themselves():
    x = leaf(1, 2)
    p = cg.zeros(2, dtype="float64")
    v, w = p[:1], p[1:]
    with cg.record():
        p += x
    assert v.requires_grad and not v.is_leaf and v.grad_fn.name() == "as_view"
    w.backward()                                    # outside recording too
    assert x.grad.tolist() == [0, 1]
    del v, w


def test_steps_over_memory_of_others_are_refused():
    array = np.zeros((4, 2))
    p = cg.asarray(array[:, 0])
    x = leaf(1, 2)
    with cg.record():
        with pytest.raises(cg.InplaceError, match="lies in steps over memory of others"):
            p[1:3] += x
        p += 1.0 * x.sum()                          # the whole of it is no part
        y = p.sum()
    y.backward()
    assert x.grad.tolist() == [4, 4] and array[:, 0].tolist() == [3] * 4


def test_writes_that_fail_leave_the_graph_as_it_was():
    x = leaf(1, 2, 3)
    with cg.record():
        y = x * 1
        v = y[:2]
        for n in range(1, 20):
            with cg.testing.fail_allocation(n) as failure:
                try:
                    v *= x[1:]
                except MemoryError:
                    assert y.tolist() == [1, 2, 3] and y.version == 0
            if not failure.failed: break
        assert y.tolist() == [2, 6, 3]
        z = y.sum()
    z.backward()
    assert x.grad.tolist() == [2, 1 + 3, 2 + 1]


def test_views_leave_nothing_behind():
    with cg.testing.assert_no_leak():
        x = leaf(1, 2, 3)
        with cg.record():
            y = x * 1
            views = [y[i:] for i in range(3)]
            for v in views: v *= 2
            z = cg.stop_gradient(y) * y
        del x, y, views, v, z
