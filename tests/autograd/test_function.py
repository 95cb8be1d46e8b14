"""autograd.Function, contract 4: operations written in Python."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import gradcheck


class Cube(cg.autograd.Function):
    """k x^3, k a number."""

    @staticmethod
    def forward(ctx, x, k=1.0):
        assert not cg.is_recording()
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * x * x * (3 * ctx.k), None)[:len(ctx.needs_input_grad)]


class Polar(cg.autograd.Function):
    """r and r^2 of x and y. Saves r."""

    @staticmethod
    def forward(ctx, x, y):
        square = x * x + y * y
        r = cg.sqrt(square)
        ctx.save_for_backward(x, None, y, r)
        return r, square

    @staticmethod
    def backward(ctx, gr, gs):
        x, nothing, y, r = ctx.saved_tensors
        assert nothing is None
        factor = gr / r + 2 * gs
        return factor * x, factor * y


def leaf(*values):
    return cg.tensor(list(values), dtype="float64").attach_grad()


def test_value_gradient_and_second_gradient():
    assert gradcheck(lambda x: Cube.apply(x, 2.0), leaf(1, -2, 3), order=2)
    assert gradcheck(Polar.apply, [leaf(1, 2), leaf(3, -4)], order=2)


def test_inputs_that_need_no_gradient():
    x, y = leaf(3.0), cg.tensor([4.0], dtype="float64")
    with cg.record():
        r, square = Polar.apply(x, y)
    assert r.grad_fn is square.grad_fn and r.grad_fn.name() == "Polar"
    assert [n for n, _ in r.grad_fn.next_functions][1] is None
    r.backward()
    assert x.grad.item() == pytest.approx(0.6)


def test_not_recorded():
    x = leaf(2.0)
    assert Cube.apply(x).tolist() == [8.0] and Cube.apply(x).is_leaf
    with cg.record():
        assert Cube.apply(x.detach()).is_leaf
        assert not Cube.apply(x).is_leaf


def test_what_it_saves_is_counted_freed_and_checked():
    x, y = leaf(1, 2), leaf(3, 4)
    with cg.record() as tape:
        a = x * 1
        r, square = Polar.apply(a, y)
    assert tape.saved_bytes == 2 * 16               # a and r; the variable y is not counted
    r.backward()
    assert tape.saved_bytes == 0
    with pytest.raises(cg.GraphFreedError, match="backward through Polar a second time"):
        square.backward()
    with cg.record():
        a = x * 1
        r, _ = Polar.apply(a, y)
        a += 1
    with pytest.raises(cg.InplaceError, match="Polar saved a tensor .* at version 0, but it has .* at version 1"):
        r.backward()


def test_retained_twice():
    x = leaf(1, 2)
    with cg.record():
        y = Cube.apply(x).sum()
    y.backward(retain_graph=True)
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == first == [3, 12]


def test_outputs_without_a_gradient_and_without_zeros():
    class Both(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            big = x > 1
            index = x * 10
            ctx.mark_non_differentiable(index)
            ctx.set_materialize_grads(False)
            return x * 2, big, index, x * 3

        @staticmethod
        def backward(ctx, *grads):
            seen.append([g if g is None else g.tolist() for g in grads])
            return sum(g * k for g, k in zip(grads, (2, 0, 0, 3), strict=True) if g is not None)

    seen = []
    x = leaf(1, 2)
    with cg.record():
        a, big, index, b = Both.apply(x)
    assert not big.requires_grad and not index.requires_grad and b.requires_grad
    b.backward()
    assert seen == [[None, None, None, [1, 1]]] and x.grad.tolist() == [3, 3]


def test_an_output_that_is_an_input():
    class Same(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1, 2)
    with cg.record():
        y = Same.apply(x)
        assert y is not x and x.is_leaf
        z = (Same.apply(y) * 2).sum()
    z.backward()
    assert x.grad.tolist() == [98, 98]


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:]], ids=["it", "a view"])
def test_an_input_that_is_written_after_it_was_returned(part):
    """The output shares its memory, so its value is not the one whose gradient was recorded."""
    class Same(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return part(x)

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1, 2, 3)
    with cg.record():
        y = x * 2
        z = Same.apply(y)
        y *= 3
        with pytest.raises(cg.InplaceError, match="this result of Same, of shape .* shares memory with a tensor that "
                                                  "was written in place after it was recorded.* return a copy"):
            z.sum()


def test_many_inputs_and_outputs():
    class Many(cg.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return tuple(x * i for i, x in enumerate(xs))

        @staticmethod
        def backward(ctx, *gs):
            return tuple(g * i for i, g in enumerate(gs))

    xs = [leaf(float(i)) for i in range(9)]
    with cg.record():
        ys = Many.apply(*xs)
        z = ys[0]
        for y in ys[1:]: z = z + y * y
    z.backward()
    assert [x.grad.item() for x in xs] == [0] + [2 * i * i * i for i in range(1, 9)]


def test_gradients_in_another_dtype_are_cast():
    class Wide(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.astype("float64") * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = cg.tensor([1.0]).attach_grad()
    with cg.record():
        y = Wide.apply(x)
    assert y.dtype == np.float64
    y.backward()
    assert x.grad.dtype == np.float32 and x.grad.tolist() == [2.0]


def test_exceptions_in_backward_reach_the_caller():
    class Own(Exception):
        pass

    class Bad(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise Own("mine")

    x = leaf(1.0)
    with cg.record():
        y = Bad.apply(x)
    with pytest.raises(Own, match="mine") as e:
        y.backward()
    assert "at Bad; 0 gradients" in e.value.__notes__[0]
    del e
    with pytest.raises(cg.GraphFreedError):
        y.backward()


def test_attributes_of_ctx_die_with_the_node():
    class Note(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.copy = x * 1
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * ctx.copy

    with cg.testing.assert_no_leak():
        x = leaf(3.0)
        with cg.record():
            y = Note.apply(x)
        y.backward()
        assert x.grad.tolist() == [3.0]
        del x, y


def test_an_output_among_the_attributes_of_ctx_is_no_cycle_after_backward():
    class Root(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x.sqrt()
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            return g / (ctx.y * 2)

    with cg.testing.assert_no_leak():
        x = leaf(4.0)
        with cg.record():
            y = Root.apply(x)
        y.backward()
        assert x.grad.tolist() == [0.25]
        del x, y


# ---- setup_context, mark_dirty, outputs of any kind ------------------------------------------------------------------

def test_setup_context():
    class Scale(cg.autograd.Function):
        @staticmethod
        def forward(x, k):
            assert not cg.is_recording()
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.k = inputs
            assert not cg.is_recording() and output.tolist() == [3, 6]
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert y.tolist() == [3, 6]
            return g * ctx.k + x * 0, None

    x = leaf(1, 2)
    with cg.record() as tape:
        y = Scale.apply(x, 3)
        assert tape.saved_bytes == y.nbytes
    y.backward()
    assert x.grad.tolist() == [3, 3]
    assert Scale.apply(x, 3).grad_fn is None        # (and without recording)


def test_outputs_that_are_no_tensors_pass_as_they_are():
    class Mixed(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return "text", x * 2, None, x > 1, [x], 5

        @staticmethod
        def backward(ctx, *grads):
            seen.append([g if g is None else g.tolist() for g in grads])
            return grads[1] * 2

    seen = []
    x = leaf(1, 2)
    with cg.record():
        text, y, nothing, big, xs, five = Mixed.apply(x)
        alone = cg.autograd.Function.__subclasses__()
    assert (text, nothing, five) == ("text", None, 5) and xs[0] is x and alone and not big.requires_grad
    y.backward()
    assert seen == [[None, [1, 1], None, [False, False], None, None]] and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("marked", [False, True])
def test_marking_does_not_change_how_many_gradients_come(marked):
    class Two(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 3
            if marked: ctx.mark_non_differentiable(y)
            return x * 2, y

        @staticmethod
        def backward(ctx, g, none):
            assert none.tolist() == [0, 0] and none.dtype == g.dtype
            return g * 2

    x = leaf(1, 2)
    with cg.record():
        y, other = Two.apply(x)
    assert other.requires_grad is not marked
    y.backward()
    assert x.grad.tolist() == [2, 2]


class AddOne(cg.autograd.Function):
    """x + 1, in place, with a gradient that is easy to recognize."""

    @staticmethod
    def forward(ctx, x):
        x += 1
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        [y] = ctx.saved_tensors
        return g * y * 10


def test_mark_dirty():
    x = leaf(1, 2)
    with cg.record():
        z = x * 1
        z.retain_grad()
        y = AddOne.apply(z)
        total = (z * y).sum()
    assert y is z and z.grad_fn.name() == "AddOne" and z.tolist() == [2, 3]
    total.backward()
    assert z.grad.tolist() == [4, 6] and x.grad.tolist() == [80, 180]   # 2 y, and times 10 y


def test_mark_dirty_of_views_and_of_bases():
    x = leaf(1, 2, 3)
    with cg.record():
        base = x * 1
        part, whole = base[1:], base[:]
        AddOne.apply(part)
        total = (base * cg.tensor([1.0, 10.0, 100.0], dtype="float64")).sum() + whole.sum()
    total.backward()
    assert base.tolist() == [1, 3, 4] and x.grad.tolist() == [2, 11 * 30, 101 * 40]
    with cg.record():
        base = x * 1
        part = base[1:]
        AddOne.apply(base)
        part.sum().backward()
    assert x.grad.tolist() == [0, 30, 40]


def test_mark_dirty_of_a_plain_tensor_and_without_recording():
    plain, x = cg.zeros(2), cg.ones(2)
    assert AddOne.apply(plain) is plain and plain.tolist() == [1, 1] and plain.grad_fn is None
    with cg.record():
        assert AddOne.apply(x) is x and x.grad_fn is None


def test_a_variable_that_forward_writes_to():
    x = leaf(1, 2)
    with cg.record(), pytest.raises(cg.InplaceError, match="leaf variable"):
        AddOne.apply(x)
    with cg.record():
        v = x[1:]
        with pytest.raises(cg.InplaceError, match="view of a leaf variable"):
            AddOne.apply(v)


def test_forward_may_write_to_its_inputs_alone():
    other = []

    class Wrong(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            other[0] += 1
            return x * 1

    x = leaf(1, 2)
    with cg.record():
        other.append(x * 1)
        with pytest.raises(cg.InplaceError, match="belongs to a graph and cannot be written outside record"):
            Wrong.apply(x)
    assert other.pop().tolist() == [1, 2]
    del Wrong


# ---- defaults and names ----------------------------------------------------------------------------------------------

def scaled(base):
    """A Function with a default, in either style, of cygrad or of PyTorch."""
    seen = []

    class Scaled(base):
        @staticmethod
        def forward(x, p=3.0, *more, q=2.0):
            return x * p * q

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.p = inputs[1]
            seen.append((len(inputs), *inputs[1:], ctx.needs_input_grad))

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.p * 2.0), *(None,) * (len(ctx.needs_input_grad) - 1)

    class Plain(base):
        @staticmethod
        def forward(ctx, x, p=3.0):
            ctx.p = p
            seen.append(ctx.needs_input_grad)
            return x * p

        @staticmethod
        def backward(ctx, g):
            return g * ctx.p, *(None,) * (len(ctx.needs_input_grad) - 1)

    return Scaled, Plain, seen


def test_setup_context_sees_the_defaults_of_forward():
    Scaled, Plain, seen = scaled(cg.autograd.Function)
    x = leaf(1, 2)
    for given, named in (((x,), {}), ((x, 5.0), {}), ((x,), {"p": 7.0}), ((x, 5.0, None), {})):
        with cg.record(): y = Scaled.apply(*given, **named)
        y.backward()
    assert seen == [(2, 3.0, (True, False)), (2, 5.0, (True, False)), (2, 7.0, (True, False)),
                    (3, 5.0, None, (True, False, False))]
    assert x.grad.tolist() == [10, 10]
    seen.clear()
    for named in ({}, {"p": 4.0}):
        with cg.record(): y = Plain.apply(x, **named)
        y.backward()
    assert seen == [(True,), (True, False)] and x.grad.tolist() == [4, 4]
    for wrong in (lambda: Scaled.apply(), lambda: Scaled.apply(x, r=1), lambda: Scaled.apply(x, 1.0, p=2.0),
                  lambda: Scaled.apply(x, q=1.0), lambda: Plain.apply(x, r=1)):
        with pytest.raises(TypeError): wrong()


def test_defaults_as_in_pytorch():
    torch = pytest.importorskip("torch")

    class Defaults(torch.autograd.Function):
        @staticmethod
        def forward(x, p=3.0): return x * p

        @staticmethod
        def setup_context(ctx, inputs, output): seen.append((len(inputs), inputs[1], ctx.needs_input_grad))

        @staticmethod
        def backward(ctx, g): return g, None

    seen, x = [], torch.ones(2, requires_grad=True)
    Defaults.apply(x)
    Defaults.apply(x, p=5.0)
    assert seen == [(2, 3.0, (True, False)), (2, 5.0, (True, False))]
    Scaled, _, ours = scaled(cg.autograd.Function)
    with cg.record():
        Scaled.apply(leaf(1, 1))
        Scaled.apply(leaf(1, 1), p=5.0)
    assert ours == seen
