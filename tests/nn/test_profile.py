"""The names of layers in memory profiles, and Module.summary."""

import copy
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn


class Net(nn.Module):
    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.encoder(x))


def by_layer(p):
    found = {}
    for row in p.at_peak():
        for layer, n in row.layers.items(): found[layer] = found.get(layer, 0) + n
    return found


def test_the_bytes_at_the_peak_by_layer():
    x, net = cg.ones(32, 20), Net()
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.profile() as p:
        with cg.record():
            y = net(x)
    signs = 32 * 64 // 8                            # of relu's result, packed when Sequential releases it
    assert by_layer(p) == {"before": before, "Net.encoder.1": 32 * 64 * 4 + signs, "Net.encoder.2": 32 * 64 * 4}
    assert sum(by_layer(p).values()) == p.peak_bytes and y.shape == (32, 10)
    table = p.table(by="layer").split("\n")
    assert table[1].split()[0] == "layer" and [line.split()[0] for line in table[2:-1]] == [
        "before", "Net.encoder.1", "Net.encoder.2", "Net.encoder.0", "Net.head"]
    assert table[6].split() == ["Net.head", "0", "0.0%", "0", f"{32 * 10 * 4:,}", "1"]


def test_everything_belongs_to_a_layer_without_children():
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(72, 10))
    x = cg.ones(16, 1, 8, 8)
    with cg.memory.profile() as p:
        with cg.record():
            y = net(x).sum()
        y.backward()
    rows = {line.split()[0]: line.split() for line in p.table(by="layer").split("\n")[2:]}
    assert "Sequential" not in rows and {f"Sequential.{i}" for i in (0, 1, 2, 3, 5)} <= set(rows)


def test_signs_that_are_packed_outside_of_layers_belong_to_the_layer():
    act, x = nn.Sequential(nn.ReLU(), nn.Identity()), cg.ones(32, 64).attach_grad()
    with cg.memory.profile() as p:
        with cg.record():
            y = act(x)
            z = y.sum()
            del y                                   # which packs them
    assert by_layer(p)["Sequential.0"] == 32 * 64 * 4 + 32 * 64 // 8 and by_layer(p)["(no layer)"] == z.nbytes
    z.backward()


def test_backward_belongs_to_the_layer_that_recorded_it():
    net, loss = Net(), nn.MSELoss()
    x, target = cg.ones(32, 20), cg.zeros(32, 10)
    with cg.memory.profile() as p:
        with cg.record():
            y = loss(net(x), target)
        y.backward()
    rows = {line.split()[0]: line.split() for line in p.table(by="layer").split("\n")[2:]}
    forward, weight, bias = 32 * 10 * 4, 64 * 10 * 4, 10 * 4
    assert int(rows["Net.head"][4].replace(",", "")) >= forward + weight + bias + 32 * 64 * 4
    assert {"MSELoss", "Net.encoder.0", "Net.encoder.2"} <= set(rows)
    assert "Net.head.weight" not in rows
    lines = {r.line for r in p.at_peak() if r.operation != "before"}
    assert all("test_profile.py" in line for line in lines)     # not a line of cygrad.nn


def test_results_of_other_operations_have_no_layer():
    net, x = nn.Linear(3, 4), cg.ones(2, 3)
    with cg.memory.profile() as p:
        y = net(x)
        z = cg.tanh(y)
    assert by_layer(p)["Linear"] == 32 and by_layer(p)["(no layer)"] == z.nbytes
    with cg.memory.profile() as p:
        z = cg.tanh(y)
    assert set(by_layer(p)) == {"before", "(no layer)"}


def test_a_module_outside_the_tree_and_an_error():
    class Outer(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(2, 2)
            self.hidden = [nn.Linear(2, 2)]         # not registered

        def forward(self, x):
            y = self.hidden[0](x), self.inner(x)
            if x.shape[0] == 3: raise ZeroDivisionError
            return y

    net = Outer()
    with cg.memory.profile() as p:
        y = net(cg.ones(1, 2))
        with pytest.raises(ZeroDivisionError):
            net(cg.ones(3, 2))
        z = cg.ones(5)
    rows = p.table(by="layer")
    assert "Outer.Linear" in rows and "Outer.inner" in rows and by_layer(p).get("Outer.inner")
    assert z.shape == (5,) and len(y) == 2
    assert "(no layer)" in rows                     # ones(5), after the error


def test_models_of_one_class_have_numbers():
    a, b, x = nn.Sequential(nn.Tanh()), nn.Sequential(nn.Tanh()), cg.ones(3)
    with cg.memory.profile() as p:
        kept = [a(x), b(cg.ones(5)), a(x), *(nn.Sequential(nn.Tanh())(cg.ones(7)) for _ in range(3))]
    found = by_layer(p)
    assert (found["Sequential.0"], found["Sequential#2.0"], found["Sequential#3.0"]) == (2 * 12, 20, 3 * 28)
    assert "Sequential#4.0" not in found            # (those of the loop were freed before the next one)
    with cg.memory.profile() as p:
        kept.append(b(x))
    assert by_layer(p)["Sequential.0"] == 12
    with cg.memory.profile() as outer, cg.memory.profile() as inner:
        kept += [a(x), b(x)]
    assert by_layer(outer) == by_layer(inner) and by_layer(inner)["Sequential#2.0"] == 12


def test_threads_have_their_own_layers():
    a, b = nn.Sequential(nn.Linear(4, 4)), nn.ModuleDict({"x": nn.Tanh()})
    barrier, kept = threading.Barrier(2, timeout=10), []

    class Slow(nn.Module):
        def __init__(self, inner):
            self.inner = inner

        def forward(self, x):
            barrier.wait()
            y = self.inner(x)
            barrier.wait()
            return y

    def run(module, x): kept.append(module(x))

    one, two = Slow(a[0]), Slow(b.x)
    with cg.memory.profile() as p:
        threads = [threading.Thread(target=run, args=args) for args in ((one, cg.ones(2, 4)), (two, cg.ones(3)))]
        for t in threads: t.start()
        for t in threads: t.join()
    assert len(kept) == 2 and {by_layer(p)["Slow.inner"], by_layer(p)["Slow#2.inner"]} == {2 * 4 * 4, 3 * 4}


def test_profiles_compare_by_layer(tmp_path):
    path = tmp_path / "a.json"
    with cg.memory.profile() as p:
        kept = nn.Linear(3, 4)(cg.ones(2, 3))
    p.save(path)
    with cg.memory.profile() as q:
        more = nn.Linear(3, 4)(cg.ones(5, 3))
    rows = {r.name: r.change for r in q.compare(path, by="layer").rows}
    assert rows["Linear"] == more.nbytes - kept.nbytes


def test_many_turns_are_bounded():
    """Only the turns of the latest nodes are remembered; a backward of these still finds its layers."""
    a, b = nn.Tanh(), nn.Sigmoid()
    x = cg.ones(3).attach_grad()
    with cg.memory.profile() as p:
        for _ in range(36000):
            with cg.record():
                y = a(b(x))
        before = {line.split()[0]: line.split()[-1] for line in p.table(by="layer").split("\n")}
        y.backward(cg.ones(3))
        after = {line.split()[0]: line.split()[-1] for line in p.table(by="layer").split("\n")}
    assert before["Sigmoid"] == after["Sigmoid"] == before["Tanh"] == "36,000" and after["Tanh"] == "36,001"


# ---- summary ---------------------------------------------------------------------------------------------------------

def test_summary():
    net = Net()
    net.encoder[2].generator = cg.random.Generator(0)
    found = net.summary(cg.ones(32, 20))
    assert [(r.path, r.layer, r.depth, r.shape) for r in found.rows] == [
        ("", "Net", 0, (32, 10)), ("encoder", "Sequential", 1, (32, 64)), ("encoder.0", "Linear", 2, (32, 64)),
        ("encoder.1", "ReLU", 2, (32, 64)), ("encoder.2", "Dropout", 2, (32, 64)), ("head", "Linear", 1, (32, 10))]
    assert [r.parameters for r in found.rows] == [1994, 1344, 1344, 0, 0, 650]
    first, second = 2 * 32 * 20 * 64, 2 * 32 * 64 * 10
    assert [r.flops for r in found.rows] == [first + second, first, first, 0, 0, second]
    kept = [32 * 20 * 4, 32 * 64 // 8, 0, 32 * 64 * 4]      # inputs of the products, and the signs of relu's result
    assert [r.kept_bytes for r in found.rows] == [sum(kept), sum(kept[:3]), *kept]
    assert (found.parameters, found.parameter_bytes, found.buffer_bytes) == (1994, 7976, 0)
    assert (found.kept_bytes, found.flops) == (sum(kept), first + second)
    assert str(found) == """\
layer                  result    parameters  bytes kept    FLOPs
Net                    (32, 10)       1,994      11,008  122,880
  encoder: Sequential  (32, 64)       1,344       2,816   81,920
    0: Linear          (32, 64)       1,344       2,560   81,920
    1: ReLU            (32, 64)           -         256        -
    2: Dropout         (32, 64)           -           -        -
  head: Linear         (32, 10)         650       8,192   40,960
1,994 parameters (7,976 bytes), buffers of 0 bytes; 11,008 bytes kept for backward; 122,880 FLOPs"""


def test_summary_is_what_the_graph_keeps():
    x, net, before = cg.ones(32, 20), Net(), cg.memory.stats()["by_category"]["saved"]
    with cg.record():
        y = net(x)
    saved = cg.memory.stats()["by_category"]["saved"] - before
    del y
    assert net.summary(x).kept_bytes == saved


def test_summary_changes_nothing():
    class Counting(nn.Module):
        def __init__(self):
            self.register_buffer("n", cg.zeros(()))
            self.drop = nn.Dropout(0.5, generator=cg.random.Generator(3))

        def forward(self, x):
            self.n.fill_(7)
            return self.drop(cg.dropout(x))

    net = Counting()
    state, default = net.drop.generator.state, cg.random.default_generator.state
    found = net.summary(cg.ones(4, 4))
    assert net.n.item() == 0 and net.drop.generator.state == state and cg.random.default_generator.state == default
    assert found.buffer_bytes == 4 and not cg.is_recording()
    net(cg.ones(2))
    assert net._hooks is net.drop._hooks is None    # so that calls are as fast as before
    net.n.fill_(0)
    with pytest.raises(ZeroDivisionError):
        net.register_forward_hook(lambda *args: 1 / 0)
        net.summary(cg.ones(4, 4))
    assert net.n.item() == 0 and len(net._hooks[1]) == 1 and not any(net.drop._hooks) and not cg.is_recording()


def test_summary_of_shared_and_waiting_layers():
    shared = nn.Linear(4, 4)

    class Both(nn.Module):
        def __init__(self, inner):
            self.first, self.twice, self.tied = nn.Linear(None, 4), inner, nn.Linear(4, 4)
            self.tied.weight = inner.weight

        def forward(self, x):
            x = self.first(x)
            return self.tied(self.twice(self.twice(x))), x

    found = Both(shared).summary(cg.ones(3, 5))
    assert [(r.path, r.calls, r.parameters) for r in found.rows] == [
        ("", 1, 48), ("first", 1, 24), ("twice", 2, 20), ("tied", 1, 4)]
    assert found.rows[0].shape == [(3, 4), (3, 4)] and found.rows[2].flops == 2 * 2 * 3 * 16
    assert "twice: Linear (2 calls)" in str(found) and found.parameters == 48


def test_summary_has_paths_from_the_calling_module_on():
    class Blocks(nn.Module):
        def __init__(self):
            self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.Tanh())])
            self.heads = nn.ModuleDict({"a": nn.ModuleDict({"b": nn.MultiheadAttention(2, 1)})})
            self.outer = nn.Sequential(Calls(self.blocks[0]))

        def forward(self, x):
            x = self.outer(self.blocks[1](self.blocks[0](x)))
            return self.heads["a"]["b"](x, x, x)

    class Calls(nn.Module):
        def __init__(self, inner):
            self.inner = [inner, nn.Sigmoid()]      # not registered
            self.parts = nn.ModuleList([nn.ReLU()])

        def forward(self, x):
            return self.parts[0](self.inner[0](x))

    found = nn.Sequential(nn.Identity(), Blocks()).summary(cg.ones(3, 1, 2))
    names = [line[:line.index("  (") if "  (" in line else line.index("  [")].rstrip()
             for line in str(found).split("\n")[1:-1]]
    assert names == ["Sequential", "  0: Identity", "  1: Blocks", "    blocks.0: Linear (2 calls)",
                     "    blocks.1: Sequential", "      0: Tanh", "    outer: Sequential", "      0: Calls",
                     "        parts.0: ReLU", "    heads.a.b: MultiheadAttention", "      out_proj: Linear"]
    assert found.rows[-2].shape == [(3, 1, 2), None] and " [(3, 1, 2), None] " in str(found)


def test_summary_of_other_results():
    class Other(nn.Module):
        def forward(self, x):
            return x, {"y": x}, [None, 3]

    found = Other().summary(cg.ones(2))
    assert found.rows[0].shape == [(2,), "dict", [None, "int"]] and " [(2,), dict, [None, int]] " in str(found)


def test_summary_follows_eval():
    net = copy.deepcopy(Net()).eval()
    found = net.summary(np.ones((32, 20), "float32"))
    assert found.rows[4].layer == "Dropout" and found.rows[0].shape == (32, 10)
    assert nn.Bilinear(3, 4, 5).summary(cg.ones(7, 3), cg.ones(7, 4)).flops == 2 * 7 * 5 * 3 * 5


def test_paths_follow_changes_of_the_tree():
    """The paths of a model are kept from call to call, until a module gets, loses or replaces a child."""
    net, x = nn.Sequential(nn.Tanh(), nn.Sequential(nn.Tanh())), cg.ones(64)
    with cg.memory.profile() as p:
        def layers():
            """The layers of one more call."""
            before = set(p._log.layers)
            kept.append(net(x))
            return sorted(set(p._log.layers) - before)

        kept = []
        assert layers() == ["Sequential.0", "Sequential.1.0"] and layers() == []
        net[1].append(nn.Tanh())                    # deeper than the outermost module
        assert layers() == ["Sequential.1.1"]
        net.append(net[0])                          # (a shared module has its first path)
        assert layers() == []
        net[0] = nn.Tanh()
        assert layers() == ["Sequential.2"]
        net.tail = nn.Tanh()
        assert layers() == ["Sequential.tail"]
        del net.tail
        net.tail = None
        net.__setstate__(nn.Sequential(nn.Sequential(nn.Tanh(), nn.Tanh())).__getstate__())
        assert layers() == ["Sequential.0.0", "Sequential.0.1"]
    net[0].register_forward_hook(lambda module, args, y: y * 2.0)       # which a profile calls too
    with cg.memory.profile() as p: assert (net(x).numpy() != kept[-1].numpy()).all()


def test_many_models_in_one_profile():
    """More models than are remembered: each has its layers, and those that are freed do not add rows."""
    with cg.memory.profile() as p:
        for _ in range(1500): nn.Sequential(nn.Tanh())(cg.ones(3))
        held = [nn.Sequential(nn.Tanh()) for _ in range(1100)]
        for _ in range(2):
            for net in held: net(cg.ones(3))
    assert len(p._log.layers) == 1 + 1100
