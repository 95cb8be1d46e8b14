"""The table and the drawing of a plan."""

import xml.etree.ElementTree as ET

import numpy as np

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, Workspace

SVG = "{http://www.w3.org/2000/svg}"


def training(model, x, name):
    """A captured training step of a model, and its examples."""
    solver = cg.optim.Adam(0.01)
    solver.set_parameters(dict(model.named_parameters()))
    t = cg.tensor(np.arange(len(x)) % 3)

    def step(x, t):
        solver.zero_grad()
        with cg.record():
            y = model(x)
            loss = cg.cross_entropy(y.mean(1) if y.ndim == 3 else y, t)
        loss.backward()
        solver.update()
        return loss

    return Net.capture(step, x, t, name=name), {"x": x, "t": t}


def models():
    yield training(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)), cg.ones(8, 6), "mlp")
    yield training(nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Linear(16, 4)), cg.ones(8, 1, 4, 4), "cnn")
    yield training(nn.TransformerBlock(8, 2, dropout=0.0), cg.ones(4, 5, 8), "transformer")


def test_live_bytes_reach_the_bound():
    for net, shapes in models():
        plan = net.plan(shapes)
        assert max(plan.live()) == plan.bound_bytes == plan.live()[plan.peak_step()], net.name
        assert len(plan.live()) == len(plan.steps) == len(plan.kinds)
        assert {row.kind for row in plan.rows} == {"forward", "gradient"} and "other" in plan.kinds


def test_the_table_names_the_blobs():
    for net, shapes in models():
        plan = net.plan(shapes)
        found = [row.blob for row in plan.rows if row.blob]
        assert len({*found}) == len(found) and {*found} <= {*net.blobs}
        assert {*net.outputs} <= {*found} and len(found) >= len([r for r in plan.rows if r.kind == "forward"]) / 2
        lines = plan.table().splitlines()
        assert len(lines) == len(plan.rows) + 2
        marked = [row for row, line in zip(plan.rows, lines[1:], strict=False) if line.startswith("*")]
        assert sum(-(-row.nbytes // 64) * 64 for row in marked) == plan.bound_bytes
        assert plan.inputs == {"x": shapes["x"].nbytes, "t": shapes["t"].nbytes} and sum(plan.outputs.values()) == 4


def test_buffers_of_blobs_have_their_sizes():
    net = Net("mlp")
    net.linear([net.relu(net.linear(["x", "w"], "h"), "r"), "v"], "y")
    plan = net.plan({"x": (8, 5), "w": (7, 5), "v": (3, 7)})
    assert {row.blob: row.nbytes for row in plan.rows if row.blob} == {"h": 224, "r": 224, "y": 96}
    assert plan.outputs == {"h": 224, "r": 224, "y": 96} and plan.inputs == {"x": 160, "w": 140, "v": 84}
    last = len(plan.steps) - 1
    assert all(row.last == last for row in plan.rows if row.blob)         # (they are kept)
    assert plan.table().splitlines()[0].split() == ["blob", "operator", "bytes", "offset", "from", "to"]


def test_a_net_without_operators_has_an_empty_plan():
    plan = Net("empty").plan()
    assert plan.rows == () and plan.live() == [] and plan.peak_step() == 0
    assert plan.table().splitlines()[-1] == "0 bytes, bound 0; inputs 0 bytes, outputs 0 bytes"
    ET.fromstring(plan.plot())


def test_a_plan_of_a_net_without_inputs_names_its_blobs():
    net = Net()
    net.add_constant(np.ones((3, 4), "float32"), "c")
    net.exp("c", "y")
    assert [row.blob for row in net.plan().rows] == ["y"]


def test_the_drawing_has_each_buffer_and_step(tmp_path):
    for net, shapes in models():
        plan = net.plan(shapes)
        text = plan.plot(tmp_path / f"{net.name}.svg")
        assert (tmp_path / f"{net.name}.svg").read_text() == text
        root = ET.fromstring(text)
        drawn = [r for r in root.iter(f"{SVG}rect") if "buffer" in r.get("class", "")]
        assert len(drawn) == len(plan.rows)
        for row, r in zip(plan.rows, drawn, strict=True):
            assert r.get("class") == f"buffer {row.kind}"
            assert 76 <= float(r.get("x")) and float(r.get("x")) + float(r.get("width")) <= 940.2
            assert 73.9 <= float(r.get("y")) and float(r.get("y")) + float(r.get("height")) <= 455
        titles = [t.text for t in root.iter(f"{SVG}title")]
        assert sum(t.startswith("step ") for t in titles) == len(plan.steps)
        assert sum(t == f"bound: {plan.bound_bytes:,} bytes" for t in titles) == 2
        assert any((t.text or "").startswith(f"peak at step {plan.peak_step()}, ") for t in root.iter(f"{SVG}text"))
        assert "prefers-color-scheme: dark" in text


def test_a_drawing_escapes_names():
    net = Net("<b>&")
    net.exp("x", "<y>&")
    root = ET.fromstring(net.plan({"x": (100,)}).plot())
    assert any(t.text == "<y>&" for t in root.iter(f"{SVG}text"))


def test_planning_for_a_table_changes_nothing():
    net, shapes = next(models())
    workspace = Workspace()
    for name, x in shapes.items(): workspace.feed(name, x)
    before = net.bindings["parameter"].detach().numpy().copy()
    net.plan(shapes).plot()
    assert np.array_equal(net.bindings["parameter"].detach().numpy(), before)
    workspace.run(net)
    assert not np.array_equal(net.bindings["parameter"].detach().numpy(), before)
