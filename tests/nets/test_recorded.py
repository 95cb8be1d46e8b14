"""Net.from_graph: the net of a recorded graph computes the same bits from the same values."""

import os

import numpy as np
import pytest
from programs import WRITES, Program, in_cygrad, write
from rows import every_gradient, floating_places, in_dtype, tensors

import cygrad as cg
from cygrad import nn
from cygrad.core.graph.symbol import place_of
from cygrad.graph import Net, Workspace
from cygrad.ops import ROWS

COUNT = int(os.environ.get("CYGRAD_PROGRAMS", "300"))

# Rows of which some samples have an operand that is no variable and that backward does not need.
UNSAVED = set("""
    add sub div floor_divide remainder hypot copysign nextafter fmax fmin threshold hardtanh maximum minimum clip where
    select mask_put batch_norm_predict embedding embedding_bag mse hinge_embedding_loss""".split())


def run(net, named):
    """The outputs of a net."""
    workspace = Workspace()
    for name in net.inputs: workspace.feed(name, named[name])
    workspace.run(net)
    return [workspace.fetch(name).numpy() for name in net.outputs]


def check(ys, named):
    """The net of the graph of `ys` gives the same bits. Returns the net."""
    net = Net.from_graph(ys, names=named)
    for y, found in zip(ys, run(net, named), strict=True):
        assert found.dtype == y.dtype and found.tobytes() == y.detach().numpy().tobytes(), net
    return net


def image(*shape):
    return cg.tensor(np.random.default_rng(1).normal(size=shape).astype("float32"))


def test_mlp():
    model, x, t = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)), image(8, 5), cg.tensor([0, 1, 2, 0] * 2)
    named = {"x": x, "t": t, **dict(model.named_parameters())}
    with cg.record():
        scores = model(x)
        loss = cg.cross_entropy(scores, t)
    net = check([loss, scores], named)
    assert net.inputs == ("x", "0.weight", "0.bias", "2.weight", "2.bias", "t") and not net.constants
    assert net.shapes["x"] == ((8, 5), "float32") and net.shapes["t"] == ((8,), "int64") and net.training is True
    gradients = net.add_gradient_operators([net.outputs[0]])
    net.outputs = [gradients[name] for name, _ in model.named_parameters()]
    loss.backward(retain_graph=True)
    for found, w in zip(run(net, named), model.parameters(), strict=True): assert np.array_equal(found, w.grad.numpy())


def test_default_names():
    w, v, x = cg.ones(3, 2).attach_grad(), cg.ones(2, 3).attach_grad(), cg.tensor([[1.0, 2.0, 3.0]])
    with cg.record(): y = cg.tanh(x @ w) @ v @ w
    net = Net.from_graph(y, "small")
    assert net.name == "small" and net.inputs == ("parameter", "parameter_1") and [*net.constants] == ["constant"]
    assert net.constants["constant"].tolist() == [[1, 2, 3]]
    x[0, 0] = 5.0
    assert net.constants["constant"].tolist() == [[1, 2, 3]]              # (a copy)
    assert [o.type for o in net.operators] == ["matmul", "tanh", "matmul", "matmul"]


def test_results_can_have_names():
    x = cg.ones(3).attach_grad()
    with cg.record():
        h = cg.exp(x)
        y = h * 2.0
    net = Net.from_graph(y, names={"h": h, "exp": y})
    assert net.text().splitlines()[-2:] == ["  0  h   = exp(parameter)", "  1  exp = mul(h, constant)"]


def test_models():
    block, lstm = nn.TransformerBlock(4, 2, dropout=0.25), nn.LSTM(4, 3, 2)
    cnn = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5),
                        nn.Flatten(), nn.Linear(16, 3))
    for model, x in ((cnn, image(8, 1, 4, 4)), (block, image(6, 5, 4)), (lstm, image(6, 5, 4))):
        x.attach_grad()
        with cg.record(): y = model(x)
        ys = [y] if isinstance(y, cg.Tensor) else [y[0], *y[1]]
        check(ys, {"x": x, **dict(model.named_parameters())})


@every_gradient
def test_every_row(row, args, kwargs):
    xs = tensors(in_dtype(args, "float64"))
    named = {f"x{i}": xs[i].attach_grad() for i in floating_places(args)}
    with cg.record(): y = row.tested(*xs, **kwargs)
    if y.grad_fn is None: return
    try: net = Net.from_graph(y, names=named)
    except RuntimeError as e:
        assert row.name in UNSAVED and "backward does not need its value" in str(e)
        return
    assert run(net, named)[0].tobytes() == y.detach().numpy().tobytes()


def step(name, x, arguments):
    """One step of a random program, without Python numbers: a graph does not have them where backward does not."""
    if name in ("div", "power", "where", "less", "greater_equal", "maximum", "minimum"): return x[0] * x[1]
    if name in ("pow", "log", "sqrt", "clip"): return cg.tanh(x[0])
    if name in ("mul", "matmul", "linear", "square", "exp"): return cg.sin(ROWS[name].function(*x))
    return in_cygrad(name, x, arguments)


def record(program, values, number):
    """The last four values of a random program."""
    with cg.record():
        for name, operands, arguments in program.steps:
            if name in WRITES:
                i, j = operands
                write(name if name != "itruediv" else "imul", values[i], values[j] if isinstance(j, int) else number,
                      arguments)
            else: values.append(step(name, [values[i] for i in operands], arguments))
    return [y for y in values[-4:] if y.requires_grad]


@pytest.mark.parametrize("kind", [0, 2])            # without and with writes in place
def test_random_programs(kind):
    done = refused = 0
    for seed in range(kind, COUNT, 3):
        program = Program(seed)
        named = {f"x{k}": cg.tensor(a).attach_grad() for k, a in enumerate(program.variables + program.constants)}
        named["number"] = cg.tensor(0.75).attach_grad()
        try: ys = record(program, [*named.values()][:-1], named["number"])
        except (cg.InplaceError, ValueError): continue
        try: net = Net.from_graph(ys, names=named)
        except RuntimeError as e:
            assert "backward does not need its value" in str(e) or "written in place since" in str(e)
            refused += 1
            continue
        outputs = dict(zip(net.outputs, run(net, named), strict=True))
        assert sorted(y.detach().numpy().tobytes() for y in distinct(ys)) == sorted(
            y.tobytes() for y in outputs.values()), program
        done += 1
    assert done >= 50 and done > 4 * refused, (done, refused)


def distinct(ys):
    """The tensors without those that have the place of another one in the graph."""
    return {place_of(y): y for y in ys}.values()


def test_a_long_chain_needs_no_recursion():
    x = cg.ones(2).attach_grad()
    with cg.record():
        y = x
        for _ in range(20_000): y = cg.neg(y)
    net = Net.from_graph(y)
    assert len(net) == 20_000 and net.operators[-1].outputs == net.outputs
    del net


def test_a_variable_alone():
    x = cg.ones(2).attach_grad()
    net = Net.from_graph(x, names={"x": x})
    assert len(net) == 0 and net.outputs == net.inputs == ("x",)


def test_writes_in_place():
    v = cg.tensor(np.arange(12.0).reshape(4, 3)).attach_grad()
    with cg.record():
        y = v * 2
        y[1:] *= y[:-1]
        z = y.exp()
        y += v
        y = z.sum() + y.sum()
    check([y], {"v": v})


def test_a_graph_of_a_gradient():
    x = cg.tensor([0.5, 2.0]).attach_grad()
    with cg.record():
        y = (x * x * x).sum()
        g = cg.autograd.grad(y, x, create_graph=True)
    check([g], {"x": x})


def test_saved_and_loaded(tmp_path):
    x, w = cg.ones(2, 3), cg.ones(3, 2).attach_grad()
    with cg.record(): y = x @ w
    Net.from_graph(y).save(tmp_path / "n.safetensors")
    net = Net.load(tmp_path / "n.safetensors")
    assert np.array_equal(run(net, {"parameter": w})[0], y.detach().numpy())


def test_recurrent_layers_have_the_same_outputs_recorded_or_not():
    x = image(6, 3, 4)
    for layer in (nn.LSTM(4, 2), nn.GRU(4, 2), nn.RNN(4, 2)):
        def step(x, layer=layer):
            layer.zero_grad()
            with cg.record(): y = layer(x)[0].sum()
            y.backward()
            return y

        net, workspace = Net.capture(step, x), Workspace()
        forward = Net.capture(lambda x, layer=layer: layer(x)[0], x)
        workspace.feed("x", x)
        workspace.run(net)
        found = [w.grad.numpy().copy() for w in layer.parameters()]
        workspace.run(forward)
        assert np.array_equal(workspace.fetch(forward.outputs[0]).numpy(), layer(x)[0].numpy())
        step(x)
        for w, g in zip(layer.parameters(), found, strict=True): assert w.grad.numpy().tobytes() == g.tobytes()
