"""Workspaces: feeding, running, fetching, threads, failures, modes, memory."""

import threading

import numpy as np
import pytest
from model_nets import mlp, numbers
from net_runs import filled

import cygrad as cg
from cygrad.graph import Net, Workspace

X = np.array([0.5, -1.0, 2.0])


def failure(net, error, wording, **blobs):
    """The last note of the error of a run."""
    with pytest.raises(error, match=wording) as caught: filled(**blobs).run(net)
    found = caught.value.__notes__[-1]
    del caught                                          # (its frames have tensors)
    return found


def one(type="square", x="x", y="y", **arguments):
    net = Net(type)
    net.add_operator(type, x, y, **arguments)
    return net


# ---- values ----------------------------------------------------------------------------------------------------------

def test_feed_and_fetch_copy():
    workspace, a = Workspace(), X.copy()
    workspace.feed("x", a)
    a[:] = 9
    fetched = workspace.fetch("x")
    fetched[...] = 7
    assert workspace.fetch("x").tolist() == X.tolist() and workspace.blobs == ("x",) and "x" in workspace
    variable = cg.tensor(X).requires_grad_()
    workspace.feed("v", variable)
    assert not workspace.fetch("v").requires_grad
    workspace.free("x")
    assert "x" not in workspace and workspace.blobs == ("v",)
    with pytest.raises(ValueError, match="the blob 'x' has no value"): workspace.free("x")
    with pytest.raises(ValueError, match="Workspace.fetch: the blob 'x' has no value; the blobs with values are v;"):
        workspace.fetch("x")


@pytest.mark.parametrize("value", [3, 2.5, True, [1, 2], [[1.0]], np.float32(3), np.zeros((0, 3)), np.array(1)])
def test_feed_takes_numbers_lists_and_arrays(value):
    found = filled(x=value).fetch("x")
    assert found.shape == np.shape(value) and found.tolist() == np.asarray(value).tolist()


def test_feed_in_place_changes_no_other_blob():
    net = Net()
    net.reshape("x", "y", shape=(3, 1))
    net.reshape("y", "z", shape=(3,))
    workspace = filled(x=X)
    workspace.run(net)
    workspace.feed("y", np.zeros((3, 1)))
    workspace.feed("x", np.ones(3))
    assert workspace.fetch("z").tolist() == X.tolist() and workspace.fetch("x").tolist() == [1, 1, 1]


def test_a_net_writes_its_inputs():
    net = Net("sgd")
    net.sub(["w", net.mul(["g", 0.5])], "w")
    workspace = filled(w=[1.0, 2.0], g=[2.0, 2.0])
    for k in range(1, 4):
        workspace.run(net)
        assert workspace.fetch("w").tolist() == [1 - k, 2 - k]


def test_a_net_writes_in_place_to_an_input_that_is_not_dense():
    first, second = Net(), Net()
    first.transpose(first.mul(["p", 2.0]), "x")
    second.add(["x", 1.0], "x", inplace=True)
    for method in (Workspace.run, Workspace.forward):
        workspace = filled(p=[[1.0, 2.0], [3.0, 4.0]])
        workspace.run(first)
        for k in (1, 2):
            method(workspace, second)
            assert workspace.fetch("x").tolist() == [[2 + k, 6 + k], [4 + k, 8 + k]]


def test_a_training_step_in_a_net_equals_eager_code():
    net, shapes = mlp()
    arrays = numbers(shapes)
    found = net.add_gradient_operators(["loss"])
    weights = [name for name in shapes if name[0] in "wb"]
    for name in weights: net.sub([name, net.mul([found[name], 0.1])], name)
    workspace = filled(**arrays)
    xs = {name: cg.tensor(a) for name, a in arrays.items()}
    for _ in range(4):
        workspace.run(net)
        for name in weights: xs[name] = xs[name].detach().requires_grad_()
        with cg.record():
            h = xs["x"]
            for k in range(4): h = cg.relu(cg.linear(h, xs[f"w{k}"], xs[f"b{k}"]))
            loss = cg.cross_entropy(cg.linear(h, xs["w4"], xs["b4"]), xs["t"])
        gradients = cg.autograd.grad(loss, [xs[name] for name in weights])
        for name, g in zip(weights, gradients, strict=True): xs[name] = xs[name].detach() - g * 0.1
        assert workspace.fetch("loss").numpy().tobytes() == loss.detach().numpy().tobytes()
        for name in weights: assert workspace.fetch(name).numpy().tobytes() == xs[name].numpy().tobytes()
    del loss, h, gradients


def test_nets_share_blobs_of_a_workspace():
    workspace = filled(x=X)
    workspace.run(one())
    workspace.run(one("neg", "y", "z"))
    assert workspace.fetch("z").tolist() == (-X * X).tolist()
    workspace.feed("x", 2 * X)
    workspace.run(one("exp", "z", "y"))                 # y of the first net stays as it was until here
    assert workspace.fetch("y").tolist() == np.exp(-X * X).tolist()


def test_a_missing_input_and_no_net():
    with pytest.raises(ValueError, match="the input 'x' of net square has no value; feed it first; the inputs are x"):
        Workspace().run(one())
    with pytest.raises(TypeError, match="Workspace.run takes a Net, got 3"): Workspace().run(3)


def test_empty_nets_and_nets_without_inputs():
    workspace = Workspace()
    workspace.run(Net())
    net = Net()
    net.add_constant(X, "c")
    net.square("c", "y")
    workspace.run(net)
    assert workspace.fetch("y").tolist() == (X * X).tolist() and workspace.blobs == ("y",)
    assert Net().plan().peak_bytes == 0 and Net().infer() == {}


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "uint8"])
def test_shapes_and_dtypes(shape, dtype):
    x = np.ones(shape, dtype)
    net = Net()
    net.astype(net.logical_not("x"), "y", dtype="float64")
    net.mul(["y", 2], "z")
    found = net.add_gradient_operators(["z"])
    workspace = filled(x=x)
    workspace.run(net)
    assert (workspace.fetch("z").numpy() == 2.0 * ~x.astype(bool)).all() and workspace.fetch("z").shape == shape
    assert workspace.fetch(found["y"]).shape == shape and net.infer({"x": (shape, dtype)})["z"] == (shape, "float64")


def test_mixed_dtypes():
    net = Net()
    net.mul(["x", "w"], "y")
    found = net.add_gradient_operators(["y"])
    workspace = filled(x=X.astype("float32"), w=X)
    with pytest.warns(cg.PrecisionWarning, match="mul: a float32 tensor"): workspace.run(net)
    assert workspace.fetch(found["x"]).dtype == "float32" and workspace.fetch(found["w"]).dtype == "float64"
    with pytest.warns(cg.PrecisionWarning):
        assert net.infer({"x": 3, "w": ((3,), "float64")})[found["x"]] == ((3,), "float32")


def test_other_shapes_make_other_programs():
    workspace, net = Workspace(), one()
    for n in (3, 5, 3, 0, 5):
        workspace.feed("x", np.arange(float(n)))
        workspace.run(net)
        assert workspace.fetch("y").tolist() == [k * k for k in range(n)]


def test_a_workspace_keeps_nothing_for_nets_that_are_gone():
    workspace, live = filled(x=np.ones(1000)), []
    for k in range(5):
        net = one("exp", y=f"y{k % 2}")
        workspace.run(net)
        workspace.forward(net)
        live.append(cg.memory.stats()["live_bytes"])
    assert live[2] == live[4]


def test_an_edited_net_runs_as_it_is_now():
    workspace, net = filled(x=X), one()
    workspace.run(net)
    net.neg("y", "z")
    workspace.run(net)
    assert workspace.fetch("z").tolist() == (-X * X).tolist()


# ---- modes and random numbers ----------------------------------------------------------------------------------------

def test_the_mode_is_that_of_the_net_or_of_the_thread():
    ones, net = np.ones(1000), one("dropout", p=0.5)
    workspace = filled(x=ones)
    for _ in range(2):
        for training in (False, True):
            with cg.train_mode() if training else cg.predict_mode(): workspace.run(net)
            assert (workspace.fetch("y").numpy().tolist() == ones.tolist()) == (not training)
    for training in (True, False):
        net.training = training
        workspace.run(net)
        assert (workspace.fetch("y").numpy().tolist() == ones.tolist()) == (not training)


def test_each_run_draws_other_numbers():
    net = one("dropout", p=0.5)
    net.training = True
    workspace, seen = filled(x=np.ones(100)), set()
    for _ in range(4):
        workspace.run(net)
        seen.add(workspace.fetch("y").numpy().tobytes())
    assert len(seen) == 4


def test_a_run_in_record_records_nothing():
    workspace = filled(x=X)
    with cg.record() as tape:
        workspace.run(one())
        assert tape.nodes == 0
    assert not workspace.fetch("y").requires_grad


# ---- failures --------------------------------------------------------------------------------------------------------

def lookup():
    net = Net("lookup")
    net.relu("x", "a")
    net.embedding(["i", "w"], "e")
    net.sum("e", "s")
    return net


LISTED = """cygrad: operator 1 of net lookup failed:
  0  a = relu(x)
  1  e = embedding(i, w)  <- failed; i: int64 (2,), w: float64 (3, 2)"""


def test_a_failed_run_lists_the_operators_that_ran():
    assert failure(lookup(), IndexError, "index 9 is out of range", x=X, i=[0, 9], w=np.ones((3, 2))) == LISTED


def test_the_results_of_a_failed_run_have_no_values():
    workspace, net = filled(x=X, i=[0, 1], w=np.ones((3, 2))), lookup()
    workspace.run(net)
    assert "s" in workspace
    workspace.feed("i", [0, 9])
    with pytest.raises(IndexError): workspace.run(net)
    assert "s" not in workspace and workspace.fetch("x").tolist() == X.tolist()
    workspace.feed("i", [0, 2])
    workspace.run(net)
    assert workspace.fetch("s").item() == 4


def test_a_failed_preparation_lists_the_operators_too():
    net = lookup()
    net.matmul(["w", "w"], "p")
    note = failure(net, ValueError, "inner sizes", x=X, i=[0], w=np.ones((3, 2)))
    assert note.splitlines()[-1] == "  3  p = matmul(w, w)  <- failed; w: float64 (3, 2)"


def test_a_failed_backward_pass_is_listed():
    net = Net("n")
    net.create_python_operator(lambda x: x * 2, "x", "y", lambda inputs, outputs, heads: [None, None])
    net.add_gradient_operators(["y"])
    lines = failure(net, ValueError, "gave 2 gradients for 1 inputs; use None where there is none", x=X).splitlines()
    assert lines[0] == "cygrad: operator 2 of net n failed:" and "<- failed" in lines[3]


def test_the_failed_operator_is_the_one_whose_step_failed():
    """Each forward operator of a net in turn, in a net of wide layers: programs of its first operators would have other
    steps."""
    for bad in ({"t": [9] * 8}, {"m": -np.eye(16)}):
        net = Net()
        h = net.relu(net.linear(["x", "w", "b"]))
        net.cross_entropy([net.linear([net.matmul([h, net.cholesky("m")]), "v", "c"]), "t"], "loss")
        net.add_gradient_operators(["loss"])
        shapes = {"x": (8, 4), "w": (16, 4), "b": (16,), "v": (3, 16), "c": (3,)}
        given = {name: np.ones(shape) for name, shape in shapes.items()} | {"m": np.eye(16), "t": [0] * 8}
        workspace = filled(**given)
        workspace.run(net)
        for name, x in bad.items(): workspace.feed(name, x)
        with pytest.raises((IndexError, np.linalg.LinAlgError)) as caught: workspace.run(net)
        failed, = [line for line in caught.value.__notes__[-1].splitlines() if "<- failed" in line]
        assert ("cross_entropy(" if "t" in bad else "cholesky(") in failed
        del caught


def test_values_are_in_the_order_of_the_net():
    net, shapes = mlp()
    net.add_gradient_operators(["loss"])
    workspace = filled(**numbers(shapes))
    workspace.run(net)
    order = [str(name) for name in net.blobs]
    made = [name for name in workspace.blobs if name not in net.inputs]
    assert made == [name for name in order if name in made] and [*net.infer(shapes)][-1] == order[-1]


def test_long_lists_are_cut():
    net, x = Net("long"), "x"
    for _ in range(40): x = net.relu(x)
    net.add_operator("unknown", x, "y")
    lines = failure(net, RuntimeError, "no row of the table of operators has the type 'unknown'", x=X).splitlines()
    assert len(lines) == 27 and lines[1] == "  ..." and lines[-1].startswith("  40  y = unknown(relu_39)  <- failed")


def test_wrong_numbers_of_outputs():
    net = Net()
    net.topk("x", "only", k=1)
    with pytest.raises(ValueError, match="topk gave 2 results for 1 output; add it with a name for each result"):
        filled(x=X).run(net)


def test_an_interrupt_leaves_a_usable_workspace():
    def interrupt(x):
        if x.numpy()[0] > 1: raise KeyboardInterrupt
        return x
    net = Net()
    net.create_python_operator(interrupt, "x", "y")
    workspace = filled(x=2 * X)
    workspace.feed("x", X + 5)
    with pytest.raises(KeyboardInterrupt): workspace.run(net)
    workspace.feed("x", X)
    workspace.run(net)
    assert workspace.fetch("y").tolist() == X.tolist() and not cg.is_recording()


# ---- Python operators ------------------------------------------------------------------------------------------------

def test_python_operators_are_called_in_each_run():
    calls = []

    def double(x):
        calls.append(x.shape)
        return x.numpy() * 2
    net = Net()
    net.create_python_operator(double, "x", "y")
    net.create_python_operator(lambda y: (y, [1, 2]), "y", ["a", "b"])
    net.create_python_operator(calls.append, "b", [])
    workspace = filled(x=X)
    for _ in range(3): workspace.run(net)
    assert len(calls) == 6 and workspace.fetch("a").tolist() == (2 * X).tolist()
    assert workspace.fetch("b").tolist() == [1, 2]
    calls.clear()


def test_shapes_that_depend_on_values_are_run_without_a_program():
    net = Net()
    net.select(["x", net.greater(["x", 0])], "p")
    found = net.add_gradient_operators([net.sum("p", "s")])
    workspace = filled(x=X)
    for x in (X, -X, X[:1]):
        workspace.feed("x", x)
        workspace.run(net)
        assert workspace.fetch("p").tolist() == x[x > 0].tolist()
        assert workspace.fetch(found["x"]).tolist() == (x > 0).astype(float).tolist()
    with pytest.raises(RuntimeError, match=r"Net.plan: operator 1, p = select\(x, greater\), needs values, so what "):
        net.plan({"x": 3})


# ---- threads ---------------------------------------------------------------------------------------------------------

def in_thread(f):
    """What f() returns or raises in another thread."""
    found = []

    def call():
        try: found.append(f())
        except Exception as e: found.append(e.with_traceback(None))
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return found.pop()


def test_a_workspace_in_use_refuses_other_threads():
    workspace, seen = filled(x=X), []

    def look(x):
        calls = [lambda: workspace.run(one()), lambda: workspace.feed("x", X), lambda: workspace.fetch("x"),
                 lambda: workspace.free("x")]
        seen.extend(in_thread(call) for call in calls)
        seen.append(in_thread(lambda: net.plan({"x": 3})))
        with pytest.raises(RuntimeError, match="a net is running in this workspace; use another one inside"):
            workspace.fetch("x")
        return x
    net = Net()
    net.create_python_operator(look, "x", "y")
    workspace.run(net)
    assert {*map(type, seen)} == {RuntimeError}
    assert str(seen.pop()).startswith("Net.plan: net net runs in another thread; wait for it, or plan a clone()")
    for name, e in zip(("run", "feed", "fetch", "free"), seen, strict=True):
        assert str(e).startswith(f"Workspace.{name}: another thread is using this workspace, or a net runs in it")
    assert workspace.fetch("y").tolist() == X.tolist()
    for name in "xy": workspace.free(name)              # (net -> look -> net is a cycle)


def test_two_threads_on_two_nets_are_both_right():
    net, shapes = mlp()
    found = net.add_gradient_operators(["loss"])
    arrays, wanted, wrong = numbers(shapes), {}, []
    scales = (1.0, 0.5)
    for scale in scales:
        workspace = filled(**{**arrays, "x": arrays["x"] * np.float32(scale)})
        workspace.run(net)
        wanted[scale] = workspace.fetch(found["w0"]).numpy().tobytes()
    start = threading.Barrier(2)

    def work(scale):
        workspace, own = filled(**{**arrays, "x": arrays["x"] * np.float32(scale)}), net.clone()
        start.wait()
        for _ in range(50):
            workspace.run(own)
            if workspace.fetch(found["w0"]).numpy().tobytes() != wanted[scale]: wrong.append(scale)
    threads = [threading.Thread(target=work, args=(scale,)) for scale in scales]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not wrong and wanted[1.0] != wanted[0.5]


def test_two_threads_on_one_net_are_refused():
    net, seen = Net(), []

    def look(x):
        for call in (lambda: filled(x=X).run(net), lambda: filled(x=X).forward(net)): seen.append(in_thread(call))
        return x

    net.create_python_operator(look, "x", "y")
    filled(x=X).run(net)
    for name, e in zip(("run", "forward"), seen, strict=True):
        assert str(e) == f"Workspace.{name}: net net runs in another thread; wait for it, or run a clone()"


def test_two_threads_on_one_workspace_are_right_or_refused():
    workspace, net, odd = filled(x=X), one(), []

    def work():
        for _ in range(200):
            try:
                workspace.run(net)
                if workspace.fetch("y").tolist() != (X * X).tolist(): odd.append("value")
            except RuntimeError as e:
                if "another thread is using this workspace" not in str(e): odd.append(str(e))
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not odd
    workspace.run(net)
