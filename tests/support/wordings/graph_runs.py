"""The wording of errors: gradients of nets, running nets, workspaces, plans."""

from threading import Thread

import numpy as np

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.graph import GradientRegistry, GradientSlice, Net, Operator, Workspace, register_gradient


def net(type="square", inputs="x", outputs="y"):
    made = Net("small")
    made.add_operator(type, inputs, outputs)
    return made


def gradients(made, ys=None, **options):
    return lambda: made().add_gradient_operators(["y"] if ys is None else ys, **options)


def run(made, **blobs):
    """A function that runs a net."""
    def f():
        workspace = Workspace()
        for name, x in blobs.items(): workspace.feed(name, x)
        workspace.run(made())
    return f


def forward(make, between=lambda workspace, made: None):
    """A function that runs a net in two parts."""
    def f():
        workspace, made = Workspace(), make()
        workspace.feed("x", X)
        workspace.forward(made)
        between(workspace, made)
        workspace.backward(made)
    return f


def hooked(call):
    """A function that calls call(net, workspace), while the variable of a captured step has a hook."""
    def f():
        w, workspace = cg.ones(1).attach_grad(), Workspace()

        def step():
            with cg.record(): loss = (w * 2).sum()
            loss.backward()

        made = Net.capture(step)
        workspace.forward(made)
        with w.register_hook(lambda g: g): call(made, workspace)
    return f


def without_its_constant():
    """The operators of a net, moved to one where a constant is an input, the gradient operators as new ones."""
    made, other, workspace = Net("small"), Net("other"), Workspace()
    made.add_constant(np.ones(3), "c")
    made.mul(["x", "c"], "y")
    made.add_gradient_operators(["y"])
    for o in made.operators: other.add_operator(o if o.of is None else o.replace())
    for name in "xc": workspace.feed(name, np.ones(3))
    workspace.run(other)


def products():
    made, y = Net("products"), "x"
    for _ in range(3): y = made.matmul([y, y])
    return made


def gradients_beside():
    """A program with a chain, whose .grad become one tensor."""
    x, y = (cg.ones(100).attach_grad() for _ in range(2))

    def step():
        with cg.record(): z = (cg.tanh(x) * cg.tanh(y)).sum()
        z.backward()

    program = Program(step)
    x.grad = y.grad = cg.ones(100)
    program.run()


def gradient_moved():
    """A program that writes to memory before its .grad, which becomes a tensor without it."""
    base, x = cg.zeros(16), cg.ones(8).attach_grad("add")
    start = base[:8]
    x.grad = base[8:]

    def step():
        with cg.record(): y = (x * 2).sum()
        y.backward()
        start.__iadd__(1)

    program = Program(step)
    program.run()
    assert base.tolist() == [1] * 8 + [2] * 8
    x.grad = cg.ones(8)
    program.run()


def gradient_beside():
    """A program with a chain, whose .grad becomes a part of the memory that the chain reads."""
    w, x = cg.ones(101), cg.ones(100).attach_grad()

    def step():
        with cg.record(): y = (cg.tanh(x) * w[1:]).sum()
        y.backward()

    program = Program(step)
    x.grad = w[:100]
    program.run()


def shared_gradient():
    """A program under a limit, whose .grad becomes a tensor from which its steps run again."""
    w, x = cg.ones(100), cg.ones(100).attach_grad()

    def step():
        with cg.record():
            y = x
            for _ in range(12): y = cg.tanh(y * w)
            y = y.sum()
        y.backward()

    program = Program(step, _limit=int(0.5 * Program(step).arena_bytes))
    x.grad = w
    program.run()


def followed():
    w = cg.ones(1).attach_grad()

    def step():
        with cg.record(): loss = (w * 2).sum()
        loss.backward()

    made = Program(step)
    with w.register_hook(lambda g: g): made.run()


def fed_binding():
    w = cg.ones(3)
    made, workspace = Net.capture(lambda x: x * w, X.astype("f4"), names={"w": w}), Workspace()
    for name in "xw": workspace.feed(name, X.astype("f4"))
    workspace.run(made)


def differentiated(made, ys=("y",)):
    made.add_gradient_operators(ys if isinstance(ys, dict) else [*ys])
    return made


def with_gradient(result):
    """A function that differentiates a net with a registered gradient that gives this."""
    def f():
        register_gradient("square")(lambda operator, heads: result)
        try: net().add_gradient_operators(["y"])
        finally: register_gradient("square")(None)
    return f


def overwritten():
    made = net()
    made.relu("x", "x")
    return made


def python(f, grad_f=None, twice=False):
    """A net of a Python operator, differentiated once or twice."""
    made = Net("small")
    made.create_python_operator(f, "x", "y", grad_f)
    if grad_f is None: return made
    first = made.add_gradient_operators(["y"])["x"]
    if twice:
        made = made.clone()
        made.add_gradient_operators([first])
    return made


def reads_a_missing_gradient():
    made = Net("small")
    made.mul([made.sum("x"), made.argmax("x", "i")], "y")
    made.relu(made.add_gradient_operators(["y"])["i"])
    return made


def through_a_reshape():
    made = net("copy")
    made.reshape(made.transpose("y"), "v", shape=-1)
    made.mul(["v", "w"], "v", inplace=True)
    return made


def other_reads(*names):
    """A gradient operator that reads other blobs than its operator keeps."""
    made = Net("small")
    made.square("x", "y")
    made.add_gradient_operators(["y"])
    last = made.operators[-1]
    made.remove_operator(last)
    made.add_operator(last.replace(inputs=[*names, last.inputs[-1]]))
    return made


def without_its_operator():
    made = Net("small")
    made.add(["x", "w"], "y")
    made.add_gradient_operators(["y"])
    made.remove_operator(made.operators[0])
    return made


def with_head(made):
    made.copy("h", "head")
    return differentiated(made, {"y": "head"})


def immediate():
    with Workspace().immediate(): net()


def inside(call):
    """A function that calls call(workspace, net) in an operator of a net that runs."""
    def f():
        workspace, made = Workspace(), Net("small")
        both = [workspace, made]                    # (emptied at the end, because the function of the net refers to it)
        made.create_python_operator(lambda x: call(*both), "x", "y")
        workspace.feed("x", X)
        try: workspace.run(made)
        finally: both.clear()
    return f


def elsewhere(call):
    """As inside, in another thread."""
    def in_thread(*args):
        errors = []

        def f():
            try: call(*args)
            except RuntimeError as e: errors.append(e.with_traceback(None))
        thread = Thread(target=f)
        thread.start()
        thread.join()
        raise errors.pop()
    return inside(in_thread)


X = np.array([0.5, -1.0, 2.0])
WHO = "Net.add_gradient_operators"
SQUARE = f"{WHO}: the gradient of operator 0, y = square(x),"
SCOPE = "which is not in the scope of the operator:"

GRADIENTS = [
    (gradients(net, "y"), TypeError,
     f"{WHO}: ys must be a list of blobs, or a dict from blob to head gradient or None, got 'y'"),
    (gradients(net, {"y": GradientSlice("i", "v")}), TypeError,
     f"{WHO}: the head of 'y' is a GradientSlice; pass the name of a dense gradient"),
    (gradients(net, ["z"]), ValueError, f"{WHO}: there is no blob 'z'; the blobs are x, y"),
    (gradients(through_a_reshape, ["y"]), RuntimeError,
     f"{WHO}: operator 3, v = mul(v, w, inplace=True), writes to memory that other blobs may share: whether a reshape "
     f"of elements that are not in row-major order, or a dropout, is a view or a copy is not known before a run; write "
     f"to a copy()"),
    (gradients(net, skip="1"), TypeError, f"{WHO}: skip must be an int, got '1'"),
    (gradients(net, skip=-1), ValueError, f"{WHO}: skip must be at least 0, got -1"),
    (gradients(lambda: differentiated(net())), RuntimeError,
     f"{WHO}: net small has gradient operators already; differentiate again on clone(), or by "
     f"GradientRegistry.get_backward_pass(net.operators, ys)"),
    (lambda: net().gradients, RuntimeError,
     "Net.gradients: net small has no gradient operators; call add_gradient_operators(ys) first"),
    (lambda: GradientRegistry.get_backward_pass(3, ["y"]), TypeError,
     "get_backward_pass: the operators must be a list of Operator, got 3"),
    (lambda: register_gradient("f")(3), TypeError, "register_gradient: wanted a function, got 3"),
    (gradients(overwritten), RuntimeError,
     f"{SQUARE} needs version 0 of the blob 'x', which has version 1 now: version 1 by operator 1, x = relu(x); let "
     f"the later operators write to another blob"),
    (gradients(lambda: net("mystery")), RuntimeError,
     f"{WHO}: the gradient of operator 0, y = mystery(x), for its input 'x' does not exist: no row of the table of "
     f"operators has the type 'mystery'; register one with @cygrad.graph.register_gradient('mystery'), or end the path "
     f"with stop_gradient"),
    (gradients(lambda: python(abs)), RuntimeError,
     f"{WHO}: the gradient of operator 0, y = python(x, f=abs), for its input 'x' does not exist: it was added without "
     f"grad_f; add it with one, or end the path with stop_gradient"),
    (with_gradient(3), TypeError, f"{SQUARE} must be (operators, input_gradients), got 3"),
    (with_gradient(([], [])), ValueError,
     f"{SQUARE} has 0 input gradients; the operator has 1 inputs; use None where there is none"),
    (with_gradient(([3], [None])), TypeError, f"{SQUARE} must be made of Operator, got 3"),
    (with_gradient(([Operator("neg", "z", "g")], ["g"])), RuntimeError,
     f"{SQUARE} reads the blob 'z', {SCOPE} its inputs, outputs, their gradients and what the gradient writes"),
    (with_gradient(([], ["g"])), RuntimeError,
     f"{SQUARE} gives the blob 'g', {SCOPE} no operator of the gradient writes it"),
]

RUNS = [
    (run(lambda: net("mystery"), x=X), RuntimeError,
     "no row of the table of operators has the type 'mystery', so it cannot run; the types are the names of the table, "
     "and net.create_python_operator() adds a function"),
    (run(lambda: net("square", outputs=["a", "b"]), x=X), ValueError,
     "square gave 1 result for 2 outputs; add it with a name for each result"),
    (run(lambda: python(abs, lambda *_: [None] * 2), x=X), ValueError,
     "grad_f of a Python operator gave 2 gradients for 1 inputs; use None where there is none"),
    (run(lambda: python(lambda x: x * 2, lambda *_: X, twice=True), x=X), RuntimeError,
     "grad_f of a Python operator gave a float64 array of shape (3,), which has no second derivative; compute it from "
     "its arguments by operators of cygrad"),
    (run(reads_a_missing_gradient, x=X), RuntimeError,
     "the blob 'i_grad' has no value: it is a gradient that does not exist, of integers or of a blob on which no head "
     "depends"),
    (run(lambda: other_reads("h", "x"), x=X, h=X), RuntimeError,
     "x_grad = square_gradient(h, x, y_autogen_grad) reads other blobs than y = square(x) keeps, which are x; let it "
     "read these"),
    (run(lambda: other_reads("h"), x=X, h=X[:2]), ValueError,
     "x_grad = square_gradient(h, y_autogen_grad): square keeps float64 of shape (3,) there, got float64 of shape "
     "(2,)"),
    (run(without_its_operator, y=X), RuntimeError,
     "add_gradient needs the operator y = add(x, w), which has not run before it in this net; add that one first, "
     "or make a new net and differentiate it"),
    (run(lambda: differentiated(net("argmax")), x=X), TypeError,
     "the head 'y' is int64, which has no gradient; differentiate blobs of floating-point numbers"),
    (run(lambda: with_head(net()), x=X, h=1.0), ValueError,
     "the head gradient 'head' of 'y' must be float64 (3,), got a float<*> tensor of shape ()"),
    (immediate, ValueError,
     "immediate mode: the blob 'x' has no value, which y = square(x) needs; feed it before the operator is added"),
    (lambda: Workspace().run(3), TypeError, "Workspace.run takes a Net, got 3"),
    (run(net), ValueError,
     "Workspace.run: the input 'x' of net small has no value; feed it first; the inputs are x"),
    (lambda: Workspace().fetch("x"), ValueError,
     "Workspace.fetch: the blob 'x' has no value; the blobs with values are none; a net keeps its outputs and what was "
     "given a name, after share_blobs() only what that names; run(net, keep=['x']) keeps it; forward() keeps all "
     "blobs"),
    (lambda: Workspace().feed("x", "text"), TypeError,
     "Workspace.feed: the value of 'x' must be a number, an array or a tensor: <*>"),
    (fed_binding, ValueError,
     "Workspace.run: net net binds 'w' to a tensor outside, so it does not use the value in this workspace; write to "
     "that tensor with copy_(), and free() the blob"),
    (lambda: Workspace().free("x"), ValueError, "Workspace.free: the blob 'x' has no value"),
    (inside(lambda workspace, made: workspace.fetch("x")), RuntimeError,
     "Workspace.fetch: a net is running in this workspace; use another one inside the function of an operator"),
    (elsewhere(lambda workspace, made: workspace.fetch("x")), RuntimeError,
     "Workspace.fetch: another thread is using this workspace, or a net runs in it; wait for it, or use another "
     "workspace"),
    (elsewhere(lambda workspace, made: Workspace().run(made)), RuntimeError,
     "Workspace.run: net small runs in another thread; wait for it, or run a clone()"),
    (lambda: Workspace().run(net(), before=3), TypeError, "Workspace.run: before must be a function or None, got 3"),
    (lambda: Workspace().forward("net"), TypeError, "Workspace.forward takes a Net, got 'net'"),
    (forward(lambda: python(abs)), RuntimeError,
     "Workspace.forward: net small has no plan, because an operator calls a Python function or needs values; use "
     "run()"),
    (lambda: Workspace().backward("net"), TypeError, "Workspace.backward takes a Net, got 'net'"),
    (lambda: Workspace().backward(net()), RuntimeError,
     "Workspace.backward: the values that it reads do not exist: call forward() of net small first, also after a "
     "backward() with clear_buffer=True"),
    (forward(lambda: differentiated(net()), lambda workspace, made: workspace.feed("x", -X)), RuntimeError,
     "Workspace.backward: 'x' was written after forward() of net small; call forward() again"),
    (hooked(lambda made, workspace: workspace.backward(made)), RuntimeError,
     "Workspace.backward: a variable of shape (1,) has a hook, which a plan of net step does not follow; call forward"
     "() again, or use run()"),
    (without_its_constant, RuntimeError,
     "x_grad = mul_gradient(<*>) does not write the gradients of all of x, c: the net that made it had a constant "
     "among these; give this net the same with add_constant()"),
    (lambda: Program.__new__(Program).difference(), RuntimeError,
     "this Program was not made by Program(f, *tensors); make another"),
    (followed, RuntimeError,
     "run: a variable of shape (1,) has a hook, which this program does not follow; call the function itself, or make "
     "another program"),
]

PLANS = [
    (lambda: net().plan({"x": 3}, "many"), ValueError,
     "Net.plan: a size must be a number of bytes or text such as \"256MiB\" or \"1.5GB\" (kB, MB, GB, TB by 1000; KiB, "
     "MiB, GiB, TiB by 1024), got 'many'"),
    (lambda: Workspace(-1), ValueError, "Workspace: a size must be at least 0 bytes, got -1"),
    (lambda: products().plan({"x": (8, 8)}, 500), cg.MemoryLimitError,
     "the budget leaves 500 bytes for the intermediate results of a run, which needs 512, because at step 2 of 3, "
     "matmul they must be there at once: 256 of matmul; raise the budget by 12 bytes"),
    (lambda: gradient_moved(), RuntimeError,
     "run: a step uses memory beside the .grad of a variable of shape (8,), which was a part of a larger tensor when "
     "the program was made; assign that again, or make another program"),
    (lambda: gradients_beside(), RuntimeError,
     "run: the .grad of a variable of shape (100,) shares the memory of another .grad that the program uses; assign a "
     "copy()"),
    (lambda: gradient_beside(), RuntimeError,
     "run: the .grad of a variable of shape (100,) shares the memory of a tensor outside that the program uses; assign "
     "a copy()"),
    (lambda: shared_gradient(), RuntimeError,
     "run: the .grad of a variable of shape (100,) shares the memory of a tensor outside from which steps run again "
     "under the budget; assign a copy()"),
    (lambda: net().plan(3), TypeError, "Net.plan: shapes must be a dict from blob to shape, got 3"),
    (lambda: net().plan(), ValueError,
     "Net.plan: the shape of the input 'x' is missing; pass shapes with a shape or (shape, dtype) for x"),
    (lambda: net().infer({"x": 3, "z": 3}), ValueError, "Net.infer: net small has no blob 'z'; its inputs are x"),
    (lambda: net().plan({"x": "3"}), TypeError,
     "Net.plan: the shape of 'x' must be a tuple of sizes, or a pair of it and a dtype, got '3'"),
    (lambda: net().plan({"x": ((3,), "float16")}), TypeError,
     "Net.plan: the shape of 'x' has the dtype 'float16'; wanted one that tensors have"),
    (lambda: net("argwhere").plan({"x": 3}), RuntimeError,
     "Net.plan: operator 0, y = argwhere(x), needs values, so what comes after it is not known before a run; "
     "Workspace.run runs this net, and without a plan"),
    (lambda: python(abs).plan({"x": 3}), RuntimeError,
     "Net.plan: operator 0, y = python(x, f=abs), calls a Python function, whose memory is not known before a run; "
     "Workspace.run runs this net, and without a plan"),
    (elsewhere(lambda workspace, made: made.plan({"x": 3})), RuntimeError,
     "Net.plan: net small runs in another thread; wait for it, or plan a clone()"),
    (hooked(lambda made, workspace: made.plan()), RuntimeError,
     "Net.plan: a variable of shape (1,) has a hook, so eager code runs net step now, without a plan; plan before, or "
     "after it"),
    (hooked(lambda made, workspace: made.infer()), RuntimeError,
     "Net.infer: a variable of shape (1,) has a hook, which is not called for virtual gradients; remove it meanwhile"),
]

CASES = GRADIENTS + RUNS + PLANS
