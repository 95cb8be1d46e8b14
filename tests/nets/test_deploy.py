"""From a module to another process: nets that are saved with their weights, called, and run from the command line.
The wordings of errors are in tests/support/wordings/deploy.py."""

import json
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, load
from cygrad.io import metadata
from cygrad.nets.calling import KEPT


def bits(ys):
    return [(y.shape, str(y.dtype), y.detach().numpy().tobytes()) for y in (ys if isinstance(ys, tuple) else (ys,))]


def test_a_loaded_net_gives_the_bits_of_the_module(tmp_path):
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
    model.eval()
    Net.capture(model, ((4, 6), "float32")).save(tmp_path / "net.cg", weights=True)
    net = load(tmp_path / "net.cg")
    assert not net.bindings and len(net.inputs) == 1
    states = {key: x.detach().numpy().tobytes() for key, x in model.state_dict().items()}
    held = {key: x.numpy().tobytes() for key, x in net.constants.items()}
    assert held == {key: x for key, x in states.items() if key != "1.num_batches_tracked"}
    for n in (4, 7, 2, 4):
        x = np.linspace(-1, 1, 6 * n, dtype="f4").reshape(n, 6)
        assert bits(net(x)) == bits(model(cg.tensor(x)))


def test_names_are_those_of_the_module_and_of_the_function(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    with cg.predict_mode(): net = Net.capture(lambda image, scale: model(image) * scale, np.ones((2, 4), "f4"),
                                              np.float32(1), names=dict(model.named_parameters()))
    net.save(tmp_path / "n.safetensors", weights=True)
    assert set(cg.load(tmp_path / "n.safetensors")) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert json.loads(metadata(tmp_path / "n.safetensors")["net"])["inputs"] == ["image", "scale"]
    found = Net.load(tmp_path / "n.safetensors")
    x = np.linspace(0, 1, 12, dtype="f4").reshape(3, 4)
    y = found(image=x, scale=2.0)
    assert bits(y) == bits(found(x, 2)) == bits(net(x, scale=2.0)) == bits(model(cg.tensor(x)) * 2)
    assert {*Net.capture(model, ((2, 4), "float32")).bindings} == {"0.weight", "0.bias", "1.weight", "1.bias"}
    net.save(tmp_path / "without.cg")
    assert not cg.load(tmp_path / "without.cg") and "0.weight" in load(tmp_path / "without.cg").inputs


def test_a_result_is_a_copy_and_a_changed_net_is_seen(tmp_path):
    net = Net("n")
    net.mul(["x", 2.0], "y")
    first = net([1.0, 2.0])
    assert net(cg.tensor([3.0, 4.0])).tolist() == [6, 8] and first.tolist() == [2, 4]
    net.add(["y", 1.0], "z")
    assert net([1.0, 2.0]).tolist() == [3, 5]
    net.outputs = ["y", "z"]
    assert [y.tolist() for y in net([1.0])] == [[2], [3]]


def test_few_plans_stay():
    net = Net("n")
    net.mul(["x", 2.0], "y")
    for n in range(1, 4 * KEPT): assert net(np.ones(n * 1000, "f4")).size == n * 1000
    assert cg.memory.stats()["live_bytes"] < 4000 * 4 * KEPT * 4 * KEPT
    del net
    assert cg.memory.stats()["live_bytes"] == 0


FIXED = {                                           # a function of x, (4, 6), and what the note says of one for 7 rows
    "literal": (lambda x: x.reshape(4, 6) * 2, "operator 0, reshape = reshape(x, shape=(4, 6)),", "4"),
    "size": (lambda x: x.reshape(x.shape[0] * 2, 3), "operator 0, reshape = reshape(x, shape=(8, 3)),",
             "8, a multiple of 4"),
    "zeros": (lambda x: cg.relu(x + cg.zeros((4, 6))), "operator 0, zeros = zeros(shape=(4, 6), dtype='float32'),",
              "4"),
    "constant": (lambda x: x * cg.tensor(np.ones((4, 1), "f4")), "operator 0, mul = mul(x, constant),", "4"),
    "broadcast": (lambda x: cg.exp(x.mean(0).broadcast_to(x.shape)) - x, "broadcast_to(mean, shape=(4, 6)),", "4"),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_size_that_is_fixed_is_named(tmp_path, name):
    f, what, number = FIXED[name]
    Net.capture(f, ((4, 6), "float32")).save(tmp_path / "n.cg", weights=True)
    net = load(tmp_path / "n.cg")
    net(np.ones((4, 6), "f4"))
    for call in (lambda x: net(x), lambda x: net.plan({"x": x})):
        with pytest.raises(ValueError) as caught: call(np.ones((7, 6), "f4"))
        note = "\n".join(caught.value.__notes__)
        assert f"{what} has the constant {number}, the size of axis 0 of the example of 'x' of shape (4, 6)" in note
        assert "and this run has 7 there" in note
        del caught


def test_other_errors_have_no_such_note():
    net = Net.capture(lambda x, y: x @ y, ((4, 6), "float32"), ((6, 3), "float32"))
    with pytest.raises(ValueError) as caught: net(np.ones((7, 6), "f4"), np.ones((5, 3), "f4"))
    assert "has the constant" not in "\n".join(caught.value.__notes__)
    del caught


def test_the_gradient_of_an_input_can_be_saved(tmp_path):
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forces(x):
        with cg.record(): energy = model(x).sum()
        return cg.autograd.grad(energy, [x])[0]

    net = Net("forces")
    name = net.sum(net.linear([net.tanh(net.linear(["x", "w", "b"])), "v", "c"]))
    for blob, p in zip("wbvc", model.parameters(), strict=True): net.add_constant(p.detach(), blob)
    net.outputs = net.add_gradient_operators([name])["x"]
    net.save(tmp_path / "n.cg", weights=True)
    for n in (4, 7):
        x = cg.tensor(np.linspace(-1, 1, 3 * n, dtype="f4").reshape(n, 3)).attach_grad()
        assert bits(load(tmp_path / "n.cg")(x.detach())) == bits(forces(x))


def test_what_one_saves_can_be_saved_again(tmp_path):
    model = nn.Linear(3, 2)
    Net.capture(model, ((4, 3), "float32")).save(tmp_path / "a.cg", weights=True)
    load(tmp_path / "a.cg").save(tmp_path / "b.cg", weights=True)
    load(tmp_path / "a.cg").clone().save(tmp_path / "c.cg")
    for name in ("b.cg", "c.cg"):
        x = np.ones((2, 3), "f4")
        assert bits(load(tmp_path / name)(x)) == bits(model(cg.tensor(x)))


def test_a_branch_reads_weights(tmp_path):
    w = cg.tensor([2.0, 3.0]).attach_grad()
    then, other = Net.capture(lambda x: x * w, ((2,), "float32")), Net.capture(lambda x: -x, ((2,), "float32"))
    net = Net("n")
    net.add_operator("If", [net.greater([net.sum("x"), 0.0]), "x"], "y", then=then, otherwise=other)
    net.outputs = "y"
    net.save(tmp_path / "n.cg", weights=True)
    found = load(tmp_path / "n.cg")
    assert found([1.0, 1.0]).tolist() == [2, 3] and found([-1.0, -1.0]).tolist() == [1, 1]


# ---- another process -------------------------------------------------------------------------------------------------

def command(*words):
    return subprocess.run([sys.executable, "-W", "error", "-m", "cygrad", "run", *map(str, words)], text=True,
                          capture_output=True)


def test_another_process_needs_no_code_of_the_model(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    Net.capture(model, ((4, 3), "float32")).save(tmp_path / "n.cg", weights=True)
    x = np.linspace(-1, 1, 15, dtype="f4").reshape(5, 3)
    np.save(tmp_path / "x.npy", x)
    program = ("import sys, numpy as np, cygrad as cg\n"
               "y = cg.graph.load(sys.argv[1])(np.load(sys.argv[2]))\n"
               "print(y.numpy().tobytes().hex(), 'cygrad.nn.linear' in sys.modules)")
    found = subprocess.run([sys.executable, "-c", program, tmp_path / "n.cg", tmp_path / "x.npy"], text=True,
                           capture_output=True, check=True)
    assert found.stdout.split() == [model(cg.tensor(x)).detach().numpy().tobytes().hex(), "False"]


def test_run_on_the_command_line(tmp_path):
    net = Net("n")
    net.outputs = [net.sub(["a", "b"], "difference"), net.mul(["a", "b"], "product")]
    net.save(tmp_path / "n.cg")
    for name, value in (("a", [1, 2]), ("b", [3, 5])): np.save(tmp_path / f"{name}.npy", np.array(value, "f4"))
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    found = command(tmp_path / "n.cg", "--input", a, "--input", f"b={b}")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "difference: float32 (2,)\n[-2. -3.]\nproduct: float32 (2,)\n[ 3. 10.]\n"
    found = command(tmp_path / "n.cg", "--input", f"b={a}", "--input", b, "--output", f"product={tmp_path / 'p.npy'}",
                    "--output", tmp_path / "d.npy")
    assert (found.returncode, found.stderr, found.stdout) == (0, "", "")
    assert np.load(tmp_path / "d.npy").tolist() == [2, 3] and np.load(tmp_path / "p.npy").tolist() == [3, 10]
    found = command(tmp_path / "n.cg", "--input", a)
    assert found.returncode == 2 and found.stdout == ""
    assert found.stderr == "python -m cygrad run: error: net n: the input 'b' is missing; its inputs are a, b\n"
    assert command(tmp_path / "none.cg").returncode == 2


def test_objects_in_an_array_file_are_not_read(tmp_path):
    net = Net("n")
    net.relu("x", "y")
    net.save(tmp_path / "n.cg")
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    found = command(tmp_path / "n.cg", "--input", tmp_path / "x.npy")
    assert found.returncode == 2 and "is no .npy file of numbers" in found.stderr
