"""If and While with all else that nets do: files, text, plans, budgets, immediate mode, functions of Python."""

import signal
from threading import Thread

import numpy as np
import pytest
from branching import Block, choosing, eager_gradients, fed, looping, small, values
from rows import same_bits

import cygrad as cg
from cygrad import nn
from cygrad.graph import GradientRegistry, Net, Workspace
from cygrad.testing import fail_allocation

R = np.random.default_rng(1)
A, W = R.uniform(0.5, 1.5, (3, 4)), R.standard_normal((3, 4))


# ---- definitions -----------------------------------------------------------------------------------------------------

def test_text_has_the_nets():
    net = choosing()
    assert net.text().splitlines()[7:] == [
        "  1  z    = If(c, x, w, then=<net scaled: 2 operators>, otherwise=<net squared: 1 operator>)",
        "  2  loss = sum(z)",
        "",
        "  then of 1: net scaled: 2 operators",
        "    inputs     x",
        "               w",
        "    constants  constant = 2.0",
        "    outputs    z",
        "",
        "    0  y = mul(x, w)",
        "    1  z = mul(y, constant)",
        "",
        "  otherwise of 1: net squared: 1 operator",
        "    inputs     x",
        "               w",
        "    outputs    y",
        "",
        "    0  y = mul(x, x)",
    ]
    for drawing in (net.to_dot(), net.to_svg()): assert "then=&lt;net" in drawing or "then=<net" in drawing


def test_the_nets_are_copies():
    inner = small("inner", ["x"], ("neg", "x", "y"), outputs="y")
    net = Net()
    net.add_operator("If", ["c", "x"], "z", then=inner, otherwise=inner)
    text = net.text()
    inner.add_operator("exp", "y", "y2")
    inner.outputs = "y2"
    assert net.text() == text
    copy = net.clone()
    assert copy.operators == net.operators and copy.text().splitlines()[1:] == text.splitlines()[1:]
    other = Net()
    other.add_operator("If", ["c", "x"], "z", then=inner, otherwise=inner)
    assert other.operators != net.operators
    net.rename("z", "result")
    same_bits(values(net, "result", c=1, x=A)[0], -A)


def test_equality_compares_what_the_nets_are():
    def made(value, k=0):
        inner = Net("inner")
        inner.add_constant(value, "k")
        inner.add(["x", "k"], "y")
        net = Net()
        net.add_operator("If", ["c", "x"], "z", then=inner, otherwise=inner)
        return net.operators[k]

    assert made(A) == made(A.copy()) and made(1) == made(1) and made(np.nan) == made(np.nan)
    for one, other in ((A, W), (1, 1.0), (1, True), (A, A[0]), (A, A.astype("float32"))):
        assert made(one) != made(other)
    assert len({made(A), made(A)}) == 1


def test_saved_and_loaded_nets_are_equal(tmp_path):
    path = tmp_path / "net.safetensors"
    inner = Net("k")
    inner.add_constant(W, "w")
    inner.mul(["x", "w"], "y")
    middle = Net("middle")
    middle.add_operator("If", ["c", "x"], "z", then=inner,
                        otherwise=small("neg", ["x"], ("neg", "x", "y"), outputs="y"))
    middle.inputs = ["x", "c", "unused"]
    net = Net("outer")
    net.add_constant(W[0], "w")
    net.add(["x", "w"], "s")
    net.add_operator("If", ["d", "s", "c", 3], "z", then=middle,
                     otherwise=small("abs", ["x", "c", "n"], ("abs", "x", "y"), outputs="y"))
    net.sum("z", "loss")
    for k in range(2):
        if k: net.add_gradient_operators(["loss"])
        net.save(path)
        loaded = Net.load(path)
        assert loaded.text() == net.text() and loaded.operators == net.operators
        assert len(loaded.passes) == k
        for c in (True, False):
            for d in (True, False):
                names = ["loss", "x_grad"][:1 + k]
                for a, b in zip(values(loaded, *names, x=A, c=c, d=d), values(net, *names, x=A, c=c, d=d), strict=True):
                    same_bits(a, b)


def test_random_programs_survive_files(tmp_path):
    path = tmp_path / "net.safetensors"
    for seed in range(20):
        net = Block(np.random.default_rng(seed)).net()
        net.sum(net.outputs[0], "loss")
        net.outputs = "loss"
        if seed % 2: net.add_gradient_operators(["loss"])
        net.save(path)
        loaded = Net.load(path)
        assert loaded.operators == net.operators and loaded.text() == net.text()


def test_inputs_can_be_assigned():
    net = Net()
    net.sub(["b", "a"], "y")
    assert net.inputs == ("b", "a")
    net.inputs = ["a", "b", "unused"]
    assert net.inputs == ("a", "b", "unused") and "unused" in net and net.clone().inputs == net.inputs
    net.inputs = "b"
    assert net.inputs == ("b", "a") and "unused" not in net
    net.inputs = []
    assert net.inputs == ("b", "a")


def test_a_net_that_binds_tensors_gives_them_to_the_net_around_it():
    """A failed addition leaves nothing behind."""
    layer = nn.Linear(4, 4, dtype="float64")
    inner = Net.capture(layer, ((3, 4), "float64"))
    net, other = Net(), small("other", ["x"], ("neg", "x", "y"), outputs="y")
    net.add_operator("neg", "x", "h")
    with pytest.raises(ValueError, match="then, the net"):
        net.add_operator("If", ["c", "h", "more"], "y", then=inner, otherwise=other)
    assert not net.bindings and net.inputs == ("x",)
    for _ in range(2): net.add_operator("If", ["c", "h"], None, then=inner, otherwise=other)
    assert [x is p for x, p in zip(net.bindings.values(), layer.parameters(), strict=True)] == [True, True]
    same_bits(values(net, "If_1", c=True, x=A)[0], layer(cg.tensor(-A)).numpy())
    layer.weight.copy_(layer.weight * 2.0)
    same_bits(values(net, "If_1", c=True, x=A)[0], layer(cg.tensor(-A)).numpy())
    same_bits(values(net, "If_1", c=False, x=A)[0], A)


# ---- gradients -------------------------------------------------------------------------------------------------------

def test_gradient_operators_have_no_second_derivative():
    for net in (choosing(), looping()):
        net.add_gradient_operators(["loss"])
        with pytest.raises(RuntimeError, match="has no second derivative; add the operators of its nets in its place"):
            GradientRegistry.get_backward_pass(net.operators, [next(g for g in net.gradients.values() if "x" in g)])


def test_passes_can_be_added_by_hand_and_edited():
    for make, blobs in ((choosing, {"a": A, "w": W, "c": True}), (looping, {"a": A, "b": W, "n": 3})):
        net, other = make(), make()
        net.add_gradient_operators(["loss"])
        operators, gradients = GradientRegistry.get_backward_pass(other.operators, ["loss"])
        for o in operators: other.add_operator(o)
        same_bits(values(other, gradients["a"], **blobs)[0], values(net, "a_grad", **blobs)[0])
        edited, changed = make(), make()
        edited.add_gradient_operators(["loss"])
        k = next(k for k, o in enumerate(edited.operators) if o.of is not None and o.of.type in ("If", "While"))
        o = edited.operators[k]
        doubled = edited.insert_operator(k, "mul", [o.inputs[-1] or o.inputs[-2], 2.0], "doubled")
        edited.remove_operator(o)
        edited.insert_operator(k + 1, o.replace(inputs=[doubled if n == (o.inputs[-1] or o.inputs[-2]) else n
                                                        for n in o.inputs]))
        np.testing.assert_allclose(values(edited, "a_grad", **blobs)[0], 2 * values(net, "a_grad", **blobs)[0],
                                   rtol=1e-15)
        changed.add_gradient_operators(["loss"])
        o = changed.operators[k]
        changed.remove_operator(o)
        changed.insert_operator(k, o.replace(inputs=["other" if n == "x" else n for n in o.inputs]))
        with pytest.raises(RuntimeError, match=f"{o.type}.* reads other blobs than .*; let it read these"):
            fed(**blobs, other=A).run(changed)


def test_a_net_can_be_cut_at_an_if():
    net = choosing()
    net.unlink("z")
    assert net.inputs == ("z",) and [o.type for o in net.operators] == ["sum"]
    net = choosing()
    net.rewire("z", on="x")
    assert [o.type for o in net.operators] == ["exp", "sum"] and not any("If" in line for line in net.text().split())


def test_registered_gradients_are_used_inside():
    @cg.graph.register_gradient("neg")
    def gradient(operator, output_gradients):
        return [cg.graph.Operator("mul", [output_gradients[0], output_gradients[0]], "g")], ["g"]

    try:
        net = Net()
        inner = small("inner", ["x"], ("neg", "x", "y"), outputs="y")
        net.add_operator("If", ["c", "x"], "z", then=inner, otherwise=inner)
        net.add_gradient_operators({"z": "head"})
        same_bits(values(net, "x_grad", c=True, x=A, head=W)[0], W * W)
    finally: cg.graph.register_gradient("neg")(None)


def test_rows_become_dense():
    net = Net()
    lookup = small("rows", ["i", "w"], ("embedding", ["i", "w"], "y", {"sparse": True}), outputs="y")
    zeros = small("dense", ["i", "w"], ("embedding", ["i", "w"], "y"), outputs="y")
    net.add_operator("If", ["c", "i", "w"], "y", then=lookup, otherwise=zeros)
    net.add_gradient_operators({"y": "head"})
    i, head = np.array([2, 0, 2]), R.standard_normal((3, 4))
    wanted = np.zeros((3, 4))
    np.add.at(wanted, i, head)
    for c in (True, False):
        np.testing.assert_allclose(values(net, "w_grad", c=c, i=i, w=W, head=head)[0], wanted, rtol=1e-15)


def test_a_branch_that_stops_gradients():
    stopped = small("stopped", ["x"], ("stop_gradient", "x", "h"), ("mul", ["h", "x"], "y"), outputs="y")
    negated = small("negated", ["x"], ("NegateGradient", "x", "y"), outputs="y")
    net = Net()
    net.add_operator("If", ["c", "x"], "y", then=stopped, otherwise=negated)
    net.add_gradient_operators({"y": "head"})
    same_bits(values(net, "x_grad", c=True, x=A, head=W)[0], W * A)
    same_bits(values(net, "x_grad", c=False, x=A, head=W)[0], -W)


# ---- memory ----------------------------------------------------------------------------------------------------------

def test_what_while_keeps_is_planned_by_its_bound():
    """64 bytes for the number of turns, and two rows of 64 x 4 + 64 bytes for each further turn."""
    shapes = {"a": ((8, 4), "float64"), "b": ((8, 4), "float64"), "n": ((), "int64")}
    peaks = []
    for turns in (1, 2, 10, 1000):
        net = looping(turns)
        net.add_gradient_operators(["loss"])
        plan = net.plan(shapes)
        rows = [row for row in plan.rows if row.operator == "While" and not row.blob]
        assert max(row.nbytes for row in rows) == 64 + turns * (256 + 64)
        peaks.append(plan.peak_bytes)
    assert peaks[3] - peaks[2] == 990 * 320
    free = looping(None)
    assert free.plan(shapes).peak_bytes == looping(1000).plan(shapes).peak_bytes < peaks[1]


def test_if_takes_the_memory_of_the_larger_net():
    def made(*sizes):
        nets = []
        for n in sizes:
            net, x = Net(f"n{n}"), "x"
            for _ in range(n): x = net.matmul([x, "w"])
            net.outputs = x
            nets.append(net)
        net = Net()
        net.add_operator("If", ["c", "x", "w"], "y", then=nets[0], otherwise=nets[-1])
        net.sum("y", "loss")
        net.add_gradient_operators(["loss"])
        net.share_blobs()
        return net.plan({"x": (64, 64), "w": (64, 64), "c": ((), "bool")}).peak_bytes

    assert made(2, 7) == made(7, 2) == made(7, 7) > made(2, 2)
    assert made(7, 7) - made(6, 6) == 64 * 64 * 4                   # (each further product keeps one operand)


def test_steps_of_branches_run_again_under_a_budget():
    net, x = Net("chain"), "x"
    for _ in range(6):
        x = net.exp(net.mul([net.sin(x), 0.5]))
        inner = small("inner", ["x"], ("tanh", "x", "t"), ("mul", ["t", "x"], "y"), outputs="y")
        x = net.add_operator("If", ["c", x], None, then=inner, otherwise=small("copy", ["x"], outputs="x"))
    net.sum(x, "loss")
    net.add_gradient_operators(["loss"])
    net.share_blobs()
    shapes = {"x": ((1000,), "float64"), "c": ((), "bool")}
    whole = net.plan(shapes).peak_bytes
    plan = net.plan(shapes, budget=whole * 7 // 10)
    assert plan.peak_bytes <= whole * 7 // 10 and plan.recomputed.calls
    x = R.standard_normal(1000)
    for c in (True, False):
        found = []
        for budget in (None, cg.memory.stats()["live_bytes"] + 8_100 + whole * 7 // 10):
            workspace = Workspace(budget)
            for name, value in (("x", x), ("c", c)): workspace.feed(name, value)
            workspace.run(net)
            found.append(workspace.fetch("x_grad").numpy())
            del workspace
        same_bits(*found)


def test_plans_name_the_steps():
    net = looping()
    net.add_gradient_operators(["loss"])
    plan = net.plan({"a": (3,), "b": (3,), "n": ((), "int64")})
    kinds = dict(zip(plan.steps, plan.kinds, strict=True))
    assert kinds["While"] == "forward" and kinds["While (backward)"] == "gradient"
    assert "While (backward)" in plan.table() and "While" in plan.plot()
    assert net.infer({"a": (3,), "b": (3,), "n": ((), "int64")})["i"] == ((), "int64")


# ---- how nets run ----------------------------------------------------------------------------------------------------

def test_immediate_mode():
    for c in (True, False):
        workspace = fed(a=A, w=W, c=c)
        with workspace.immediate():
            net = choosing()
            found = net.add_gradient_operators(["loss"])
        names = [found["a"], found["w"]]
        other = choosing()
        other.add_gradient_operators(["loss"])
        for name, g in zip(names, values(other, *names, a=A, w=W, c=c), strict=True):
            np.testing.assert_allclose(workspace.fetch(name).numpy(), g, rtol=1e-15)
    inner, workspace = looping(None), fed(a=A, b=W, n=3)
    with workspace.immediate():                     # (a While without a bound has no gradient, but runs)
        net = Net()
        net.exp("b", "x")
        net.add_constant(0, inner.operators[1].inputs[1])
        net.add_operator(inner.operators[1])
    assert workspace.fetch("i").item() == 3


def test_python_functions_in_nets_run_without_a_plan(tmp_path):
    inner = Net("doubling")
    inner.create_python_operator(lambda x: x * 2.0, ["x"], "y", grad_f=lambda inputs, outputs, g: g[0] * 2.0)
    net = Net("outer")
    net.add_operator("If", ["c", "x"], "y", then=inner, otherwise=small("abs", ["x"], ("abs", "x", "y"), outputs="y"))
    net.add_gradient_operators({"y": "head"})
    for c, g in ((True, 2 * A), (False, A * np.sign(W))):
        workspace = fed(c=c, x=W, head=A)
        workspace.run(net)
        same_bits(workspace.fetch("x_grad").numpy(), g)
    with pytest.raises(RuntimeError, match="operator 0, .*, calls a Python function, whose memory is not known"):
        net.plan({"x": 3, "c": (), "head": 3})
    with pytest.raises(ValueError, match=r"operator 0 \(If\) calls a Python function, and a file holds no functions"):
        net.save(tmp_path / "net.safetensors")


def test_nets_that_need_values_run_without_a_plan():
    """How many elements are not zero is known in a run only."""
    counted = small("counted", ["x"], ("argwhere", "x", "u"), ("astype", "u", "f", {"dtype": "float64"}),
                    ("sum", "f", "y"), outputs="y")
    net = Net()
    net.add_operator("If", ["c", "x"], "y", then=counted, otherwise=small("sum", ["x"], ("sum", "x", "y"), outputs="y"))
    x = np.array([3.0, 0.0, 4.0])
    for c, y in ((True, 2.0), (False, 7.0)): assert values(net, "y", c=c, x=x)[0] == y
    with pytest.raises(RuntimeError, match="operator 0, .*, needs values"): net.plan({"x": 3, "c": ()})


def test_train_mode_is_that_of_the_run():
    net = Net()
    drop = small("drop", ["x"], ("dropout", "x", "y"), outputs="y")
    net.add_operator("If", ["c", "x"], "y", then=drop, otherwise=drop)
    workspace = fed(x=np.ones(1000), c=True)
    workspace.run(net)
    assert workspace.fetch("y").numpy().all()
    with cg.autograd.train_mode(): workspace.run(net)
    assert not workspace.fetch("y").numpy().all()
    workspace.run(net)
    assert workspace.fetch("y").numpy().all()


def notes_of(error, f, *arguments, **named):
    """The notes of the error that a call raises. (The error itself would keep the tensors of its frames.)"""
    try: f(*arguments, **named)
    except error as e: return "\n".join(e.__notes__)
    raise AssertionError(f"no {error.__name__}")


def test_errors_inside_name_the_operators():
    wrong = small("wrong", ["x", "w"], ("exp", "x", "h"), ("matmul", ["h", "w"], "y"), outputs="y")
    net = Net("outer")
    net.add_operator("If", ["c", "x", "w"], "y", then=wrong, otherwise=wrong)
    for run in ({}, {"before": lambda operator, values: None}):
        notes = notes_of(ValueError, fed(c=True, x=A, w=W).run, net, **run)
        assert "operator 1 of net wrong failed" in notes and "operator 0 of net outer failed" in notes


def test_a_step_that_fails_in_a_program_has_notes_and_can_run_again():
    taken = small("taken", ["x", "i"], ("take", ["x", "i"], "y", {"axis": 0}), outputs="y")
    net = Net("outer")
    net.add_operator("If", ["c", "x", "i"], "y", then=taken, otherwise=taken)
    workspace = fed(c=True, x=A, i=np.array([1]))
    workspace.run(net)
    workspace.feed("i", np.array([99]))
    assert "operator 0 of net outer failed" in notes_of(IndexError, workspace.run, net) and "y" not in workspace
    workspace.feed("i", np.array([2]))
    workspace.run(net)
    same_bits(workspace.fetch("y").numpy(), A[[2]])


def test_a_loop_without_end_can_be_interrupted():
    class Alarm(Exception): pass

    def stop(*_): raise Alarm

    body = small("body", ["x"], ("mul", ["x", 1.0], "y"), outputs="y")
    net = Net()
    net.add_operator("While", "x", "y", condition=small("always", ["x"], ("equal", ["x", "x"], "c"), outputs="c"),
                     body=body)
    workspace = fed(x=1.0)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for run in ({}, {"before": lambda operator, values: None}):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(Alarm): workspace.run(net, **run)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_do_not_change_the_bits():
    a, w = R.uniform(0.5, 1.5, (400, 300)), R.standard_normal((400, 300))
    found = []
    threads = cg.get_num_threads()
    try:
        for n in (1, 2):
            cg.set_num_threads(n)
            net = choosing()
            net.add_gradient_operators(["loss"])
            found.append(values(net, "loss", "a_grad", "w_grad", c=True, a=a, w=w))
    finally: cg.set_num_threads(threads)
    for one, two in zip(*found, strict=True): same_bits(one, two)


def test_an_allocation_that_fails_leaves_nothing_behind():
    """Also not in the traces of nets, which are inside that of the net around them."""
    for make, blobs in ((looping, {"a": A, "b": W, "n": 3}), (choosing, {"a": A, "w": W, "c": True})):
        net = make()
        net.add_gradient_operators(["loss"])
        (wanted,) = values(net, "a_grad", **blobs)
        for k in range(1, 200):
            workspace = fed(**blobs)
            before = cg.memory.stats()["live_bytes"]
            try:
                with fail_allocation(k): workspace.run(net)
            except MemoryError: assert cg.memory.stats()["live_bytes"] == before
            else: break
            workspace.run(net)
            same_bits(workspace.fetch("a_grad").numpy(), wanted)
        assert 10 < k < 199


def test_threads_that_plan_at_the_same_time():
    """A thread that traces a net inside of a trace lets no other one begin a trace."""
    wrong = []

    def work(seed):
        for k in range(10):
            try:
                net = Block(np.random.default_rng(10 * seed + k)).net()
                net.sum(net.outputs[0], "loss")
                net.outputs = "loss"
                net.add_gradient_operators(["loss"])
                blobs = dict.fromkeys(net.inputs, A[:2, :2])
                with np.errstate(all="ignore"): values(net, "loss", **blobs)
            except BaseException as e: wrong.append(e)

    threads = [Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not wrong


def test_carried_values_can_change_places():
    net, names = Net(), ["x", "y", "i"]
    net.add_operator("While", ["x", "y", 0], ["a", "b", "i"], turns=4,
                     condition=small("c", names, ("less", ["i", 3], "c"), outputs="c"),
                     body=small("swap", names, ("add", ["i", 1], "j"), outputs=["y", "x", "j"]))
    net.mul(["a", "a"], "s")
    net.sum("s", "loss")
    net.outputs = ["a", "b", "loss"]
    net.add_gradient_operators(["loss"])
    a, b, dx, dy = values(net, "a", "b", "x_grad", "y_grad", x=A, y=W)
    same_bits(a, W)
    same_bits(b, A)
    _, (gx, gy) = eager_gradients(lambda x, y: (y * y).sum() + 0.0 * x.sum(), A, W)
    same_bits(dx, gx)
    same_bits(dy, gy)


def test_a_solver_trains_what_branches_bind():
    """An Updater on a net with an If takes the steps of eager code."""
    def trained(in_net):
        cg.random.seed(3)
        layers = [nn.Linear(4, 3, dtype="float64") for _ in range(2)]
        solver = cg.optim.Sgd(lr=0.1)
        solver.set_parameters({f"{k}.{name}": p for k, layer in enumerate(layers)
                               for name, p in layer.named_parameters()})
        net = Net()
        nets = [Net.capture(layer, ((3, 4), "float64")) for layer in layers]
        net.add_operator("If", ["c", "x"], "y", then=nets[0], otherwise=nets[1])
        net.sum(net.mul(["y", "y"]), "loss")
        net.add_gradient_operators(["loss"], bind=True)
        workspace = fed(x=A)
        for c in (True, False, True):
            solver.zero_grad()
            if in_net:
                workspace.feed("c", c)
                workspace.run(net)
            else:
                with cg.record():
                    y = layers[not c](cg.tensor(A))
                    loss = (y * y).sum()
                loss.backward()
                for p in layers[c].parameters(): p.grad = cg.zeros(p.shape, dtype=p.dtype)
            solver.update()
        return [p.numpy().copy() for layer in layers for p in layer.parameters()]

    for a, b in zip(trained(True), trained(False), strict=True): same_bits(a, b)
