"""The order in which contributions to a gradient are added: that of eager code, in which parts of a tensor and views of
memory that was written in place have orders of their own."""

import numpy as np
import pytest
from rows import same_bits

import cygrad as cg
from cygrad.graph import Net, Workspace


def parts(size, late):
    """A function of a variable of which parts are used several times; `late`: before all that uses the whole."""
    def f(w):
        t = w * 1.0
        a, b, c = (t[i * size:(i + 1) * size] for i in range(3))
        whole, rest = cg.exp(t * 0.3) * cg.sin(t * 0.7) * t, sum((p * p * 0.3).sum() for p in (a, b, c))
        if late: rest = rest + whole.sum()
        for p in (a, b, c): rest = rest + (cg.tanh(p) * p).sum()
        return rest if late else rest + whole.sum()

    return f


def element(w):
    t = w * 1.0
    x = t[2]
    return (t * t).sum() + (x * x).sum() + cg.square(t * 0.4 / (x * x + 0.5)).sum()


def through_views(view, order):
    """A function that writes through a view of a tensor, and then uses both."""
    def f(w):
        t = cg.sin(w * 1.0)
        v = view(t)
        v[..., 1:] = 0.75
        if order == "tensor first": y, z = cg.log_softmax(t, 0), v * 0.4
        elif order == "view first": z, y = v * 0.4, cg.log_softmax(t, 0)
        else:
            z = v * 1.0
            y = cg.log_softmax(t, 0)
            z = z * v * 0.4
        return (z * z).sum() + (y * y).sum() + (t * t * 0.3).sum()

    return f


FUNCTIONS = {
    **{f"{n} of 640{', late' * late}": (parts(n, late), 640) for n in (1, 5, 10, 16) for late in (False, True)},
    "element": (element, (4,)),
    **{f"{name}, {order}": (through_views(view, order), (3, 4)) for order in ("tensor first", "view first", "between")
       for name, view in {"reshape": lambda t: t.reshape(1, 3, 4), "transpose": lambda t: t.T,
                          "slice": lambda t: t[1:], "same": lambda t: cg.transpose(t, (0, 1))}.items()},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_captures_add_in_the_order_of_eager_code(name):
    f, shape = FUNCTIONS[name]
    w, rng, workspace = cg.tensor(np.zeros(shape)).attach_grad(), np.random.default_rng(0), Workspace()

    def step():
        with cg.record(): loss = f(w)
        loss.backward()

    net = Net.capture(step)
    for _ in range(20):
        w.copy_(cg.tensor(rng.uniform(-1.5, 1.5, shape)))
        step()
        wanted = w.grad.numpy().copy()
        workspace.run(net)
        same_bits(w.grad.numpy(), wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_order_is_that_of_a_saved_net(name, tmp_path):
    f, shape = FUNCTIONS[name]
    w, rng = cg.tensor(np.zeros(shape)).attach_grad(), np.random.default_rng(0)

    def gradient():
        with cg.record(): loss = f(w)
        return cg.autograd.grad(loss, w)

    net = Net.capture(gradient)
    net.save(tmp_path / "net.safetensors")
    loaded, workspace = Net.load(tmp_path / "net.safetensors"), Workspace()
    assert len(loaded.passes) == 1 and loaded.operators == net.operators
    for _ in range(5):
        w.copy_(cg.tensor(rng.uniform(-1.5, 1.5, shape)))
        workspace.feed(*loaded.inputs, w)
        workspace.run(loaded)
        same_bits(workspace.fetch(*loaded.outputs).numpy(), gradient().numpy())
