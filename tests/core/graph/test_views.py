"""Recorded in-place writes through views: contract 5. Random programs are in properties/test_against_torch.py."""

import numpy as np
import pytest
from peers import torch

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
        y[1:] += x[:2]                              # two views, the sum, its insertion into the whole
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
        b += 1                                      # another part of the same memory, with the same version
    with pytest.raises(cg.InplaceError, match="mul saved a tensor .* at version 0, but it has .* at version 1"):
        z.backward()


def test_detached_memory_is_apart():
    x = leaf(1, 2)
    with cg.record():
        y = x * 2
        d, e = y.detach(), y.detach()[:1]
        for stranger in (d, e):
            with pytest.raises(cg.InplaceError, match="is detached, by detach.* write to a copy"):
                stranger += x[:1]
        y *= 3                                      # their values change, but not their nodes
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
        with pytest.raises(cg.InplaceError, match="is a strided array of external memory"):
            p[1:3] += x
        p += 1.0 * x.sum()                          # the whole tensor is not a part
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


# ---- each alias has the gradient of its own uses ---------------------------------------------------------------------

def torch_and_ours(program):
    """The results of `program(lib, x)` in PyTorch and in cygrad, as lists. x is a variable of six numbers."""
    found = []
    for lib, x in ((torch, torch.arange(1.0, 7.0, dtype=torch.float64, requires_grad=True)),
                   (cg, cg.arange(1.0, 7.0, dtype="float64").attach_grad())):
        with cg.record():
            results = program(lib, x)
        found.append([None if g is None else g.tolist() for g in results])
    return found


def grads(lib, y, xs):
    return lib.autograd.grad(y, xs, allow_unused=True)


ALIASES = {
    "a whole view is written": lambda b, v, w: v.__imul__(2),
    "the base is written": lambda b, v, w: b.__imul__(2),
    "another view is written": lambda b, v, w: w.__imul__(2),
    "both, one after the other": lambda b, v, w: (v.__imul__(2), w.__iadd__(1.5)),
    "a part of a view": lambda b, v, w: v[2:4].__imul__(3),
    "all three": lambda b, v, w: (b.__imul__(2), v.__iadd__(1), w.__imul__(5)),
}


@pytest.mark.parametrize("write", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize("view", [lambda b: b[:], lambda b: b.reshape(2, 3), lambda b: b.reshape(3, 2).T,
                                  lambda b: b[1:5]], ids=["whole", "reshape", "transpose", "part"])
def test_aliases_have_the_gradients_of_their_own_uses(view, write):
    def program(lib, x):
        base = x * 1
        v, w = view(base), base[:]
        write(base, v, w)
        y = (v * 3).sum() + (w * 5).sum() + (base * 100).sum() + (v * v).sum()
        return grads(lib, y, [v, w, base, x])

    theirs, ours = torch_and_ours(program)
    assert ours == theirs


def test_the_three_numbers_of_the_contract():
    def program(lib, x):
        base = x * 1
        v1, v2 = base[:], base[:]
        v1 *= 2
        return grads(lib, (v1 * 3).sum() + (v2 * 5).sum() + (base * 100).sum(), [v1, v2, base])

    theirs, ours = torch_and_ours(program)
    assert ours == theirs == [[3.0] * 6, [5.0] * 6, [108.0] * 6]


@pytest.mark.parametrize("before", [False, True])
def test_kept_gradients_of_aliases(before):
    """A retained gradient belongs to its tensor, whether requested before or after the write."""
    def program(lib, x):
        base = x * 1
        v1, v2 = base[:], base[:]
        if before: v1.retain_grad(), v2.retain_grad(), base.retain_grad()
        v1 *= 2
        if not before: v1.retain_grad(), v2.retain_grad(), base.retain_grad()
        ((v1 * 3).sum() + (v2 * 5).sum() + (base * 100).sum()).backward()
        return v1.grad, v2.grad, base.grad

    theirs, ours = torch_and_ours(program)
    assert ours == theirs == [[3.0] * 6, [5.0] * 6, [108.0] * 6]


def test_hooks_on_aliases():
    def program(lib, x):
        base = x * 1
        v1, v2 = base[:], base[:]
        v1 *= 2
        seen = []
        for t in (v1, v2, base): t.register_hook(lambda g: seen.append(g))
        ((v1 * 3).sum() + (v2 * 5).sum() + (base * 100).sum()).backward()
        return seen

    x = cg.arange(1.0, 7.0, dtype="float64").attach_grad()
    with cg.record():                               # (PyTorch 2.13 crashes here: `v2` is stale)
        found = program(cg, x)
    assert sorted(g.tolist() for g in found) == [[3.0] * 6, [5.0] * 6, [108.0] * 6]


def test_a_view_whose_leaf_has_died():
    x = leaf(1, 2, 3)
    with cg.record():
        v = x[1:]
        del x
        with pytest.raises(cg.InplaceError, match=r"a view of a leaf variable of shape \(2,\) cannot be written"):
            v += 1
        with pytest.raises(cg.InplaceError, match="a view of a leaf variable"):
            v[:1].fill_(0)
        (v * v).sum().backward()
    assert v.tolist() == [2, 3]


def test_a_part_of_steps_after_a_write_to_the_whole():
    """A part of strided memory is not a strided view of the elements: an error instead of a wrong gradient."""
    p, x = cg.asarray(np.zeros((4, 2))[:, 0]), leaf(1, 2, 3, 4)
    v, whole = p[1:3], p[:]
    with cg.record():
        p += x
        with pytest.raises(cg.InplaceError, match=r"this view of shape \(2,\) is part of a tensor of shape \(4,\)"):
            v * 3
        y = (whole * 2).sum() + p.sum()
    y.backward()
    assert x.grad.tolist() == [3, 3, 3, 3]


# ---- tensors that are stale after a write through another one --------------------------------------------------------

def left_behind(kind):
    """A plain tensor, or a view of one. A recorded value was written to its memory through another view."""
    x, plain = leaf(1, 2, 3), cg.zeros(3, dtype="float64")
    other = plain[:]
    with cg.record():
        if kind == "base": other += x
        else: plain += x
    return plain if kind == "base" else other


STALE = {
    "numpy": lambda t: t.numpy(), "asarray": lambda t: np.asarray(t), "buffer": lambda t: memoryview(t),
    "dlpack": lambda t: t.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("kind", ["base", "view"])
@pytest.mark.parametrize("read", STALE.values(), ids=STALE)
def test_stale_tensors_are_not_lent_while_recording(read, kind):
    t = left_behind(kind)
    with cg.record(), pytest.raises(RuntimeError, match="while recording"):
        read(t)


@pytest.mark.parametrize("kind", ["base", "view"])
def test_stale_tensors_know_their_node(kind):
    assert not left_behind(kind).numpy().flags.writeable
    assert memoryview(left_behind(kind)).readonly
    assert left_behind(kind).requires_grad and not left_behind(kind).is_leaf
    assert "grad_fn" in repr(left_behind(kind))
    t = left_behind(kind)
    with pytest.raises(cg.InplaceError, match="belongs to a graph and cannot be written outside record"):
        t += 1
    with cg.record():
        y = cg.sort(left_behind(kind))
        z = cg.dropout(left_behind(kind), 0.5)
        w = y[:2] * 2
    assert y.requires_grad and z.requires_grad and w.requires_grad
    with pytest.raises(ValueError, match="not a variable"):
        cg.optim.Sgd().set_parameters([left_behind(kind)])
    assert "the result of" in str(cg.memory.why(left_behind(kind)).entries)
    v = left_behind(kind)[:2]                       # a view that is made while not recording is not in the graph
    assert not v.requires_grad
    left_behind(kind).sum().item()


def test_a_variable_no_longer_that_is_left_behind():
    """Its accumulator does not refer to it any more. An old graph that reaches the accumulator writes no gradient."""
    x, plain = leaf(1, 2, 3), cg.zeros(3, dtype="float64")
    v = plain[:].attach_grad()
    with cg.record():
        old = v * 2
    v.attach_grad("null")
    with cg.record():
        plain += x
        y = (v * 5).sum()
    y.backward()
    assert x.grad.tolist() == [5, 5, 5] and v.grad is None
    del v
    old.backward(cg.ones(3, dtype="float64"))
