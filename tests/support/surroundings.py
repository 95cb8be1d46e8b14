"""What is around a run of a net: a case for each line of the list in cygrad/core/graph/around.pyx.

A case takes a function `build` and returns what it has seen. build(step, *examples) is a function that runs the step:
as eager code, by a net in a workspace, or by a Program. Nets see what eager code sees, and so do programs, or they
raise an error that names the difference."""

import re

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.core.graph import around
from cygrad.graph import Net, Workspace

WAYS = "eager|kept|read|refused|fixed|not needed"
LISTED = {name for name, _ in re.findall(rf"^    (\S+(?: \S+)*)  +({WAYS})", around.__doc__, re.MULTILINE)}
CASES, REFUSALS = {}, {}


def case(line, refusal=None):
    """Register a case for a line of the list. `refusal`: what a Program raises."""
    def register(f):
        CASES[f.__name__], REFUSALS[f.__name__] = (line, f), refusal
        return f
    return register


def eager(step, *examples):
    return lambda *xs: step(*map(cg.tensor, xs))


def net(step, *examples):
    made, workspace = Net.capture(step, *examples), Workspace()
    names = [str(name) for name in made.inputs]

    def run(*xs):
        for name, x in zip(names, xs, strict=True): workspace.feed(name, x)
        workspace.run(made)
        return workspace.fetch(made.outputs[0]) if made.outputs else None
    return run


def program(step, *examples):
    made = Program(step, *examples)
    return lambda *xs: made.run(*map(cg.tensor, xs))


def variable(values=(1.0,), **arguments):
    return cg.tensor(np.float32(values)).attach_grad(**arguments)


def loss_of(w, factor=1.0):
    def step():
        with cg.record(): loss = (w * factor).sum()
        loss.backward()
    return step


def outcome(f, *xs):
    """What a call does: None, or the kind of its error."""
    try: f(*xs)
    except (RuntimeError, TypeError, ValueError) as e: return type(e).__name__
    return None


# ---- scopes ----------------------------------------------------------------------------------------------------------

@case("GradientCollector", "a GradientCollector is open in this thread")
def collector(build):
    w, v = variable(), variable(grad_req="add")

    def step():
        with cg.record(): loss = (w * v).sum()
        loss.backward()
    run, seen = build(step), []
    for _ in range(2):
        run()
        with cg.GradientCollector() as gc:
            for _ in range(3):
                run()
                seen.append((w.grad.item(), v.grad.item()))
            gc.zero_gradients()
            run()
            seen.append((w.grad.item(), v.grad.item(), cg.is_recording()))
        run()
        seen.append((w.grad.item(), v.grad.item()))
    return seen


@case("GradientCollector", "a GradientCollector is open in this thread")
def collector_of_the_capture(build):
    w = variable()
    with cg.GradientCollector(): run, seen = build(loss_of(w)), []
    for _ in range(2):
        run()
        seen.append(w.grad.item())
    with cg.GradientCollector():
        for _ in range(2): run()
    return [*seen, w.grad.item()]


@case("detect_anomaly", r"detect_anomaly\(\) is open in this thread")
def anomaly(build):
    w = variable([0.0])

    def step():
        with cg.record(): loss = (cg.sqrt(w) * 0.0).sum()
        loss.backward()
    run = build(step)
    run()
    try:
        with cg.autograd.detect_anomaly(): run()
    except RuntimeError as e:
        if "is open" in str(e): raise
        found = str(e).partition(",")[0]
    return found, str(w.grad.numpy())


@case("saved_tensors_hooks", r"saved_tensors_hooks\(\) is open in this thread")
def packed(build):
    w, calls = variable([3.0]), []

    def step():
        with cg.record(): loss = (w * w).sum()
        loss.backward()
    run = build(step)
    run()
    with cg.autograd.saved_tensors_hooks(lambda t: calls.append(1) or t * 2, lambda t: t): run()
    first = w.grad.item()
    run()
    return first, w.grad.item(), len(calls)


# ---- hooks -----------------------------------------------------------------------------------------------------------

@case("hooks on variables", r"a variable of shape \(1,\) has a hook")
def tensor_hook(build):
    w = variable()
    run, seen, calls = build(loss_of(w)), [], []
    run()
    handle = w.register_hook(lambda g: g * 10)
    run()
    seen.append(w.grad.item())
    with w.register_hook(lambda g: calls.append(g.item()) or g + len(calls)):      # (a stateful one)
        for _ in range(3):
            run()
            seen.append(w.grad.item())
    handle.remove()
    run()
    return seen, calls, w.grad.item()


@case("hooks on variables", r"a variable of shape \(1,\) has a hook")
def post_accumulate_hook(build):
    w, calls = variable(grad_req="add"), []
    run = build(loss_of(w))
    run()
    handle = w.register_post_accumulate_grad_hook(lambda x: calls.append(x.grad.item()))
    run()
    run()
    handle.remove()
    run()
    return calls, w.grad.item()


@case("hooks on variables", r"a variable of shape \(1,\) has a hook")
def hook_of_the_node(build):
    w, calls = variable(), []
    run = build(loss_of(w))
    run()
    with cg.record(): node = (w * 1).grad_fn.next_functions[0][0]
    with node.register_hook(lambda inputs, outputs: calls.append(outputs[0].item())): run()
    run()
    return calls, w.grad.item()


@case("hooks on variables")
def hook_without_a_pass(build):
    w = variable()

    def forward(x):
        with cg.record(): return (w * x).detach()
    run = build(forward, ((1,), "float32"))
    with w.register_hook(lambda g: g * 10): return run(np.float32([3])).tolist()


@case("hooks on older graphs", "mul, recorded outside, has a hook")
def hook_on_a_result(build):
    w = variable()
    with cg.record(): z = w * 2
    run, seen = older(build, z), []
    run()
    with z.register_hook(lambda g: g * 10): run()
    seen.append(w.grad.item())
    run()
    return *seen, w.grad.item()


def older(build, z):
    def step():
        with cg.record(): loss = z.sum()
        loss.backward(retain_graph=True)
    return build(step)


# ---- roles -----------------------------------------------------------------------------------------------------------

@case("grad_req", 'the grad_req of a variable of shape (1,) is "write" and was "add"'.replace("(1,)", r"\(1,\)"))
def request(build):
    w = variable(grad_req="add")
    run, seen = build(loss_of(w)), []
    for change in (lambda: None, lambda: w.attach_grad("write"), lambda: w.attach_grad("add"), w.requires_grad_):
        change()
        for _ in range(2):
            run()
            seen.append(w.grad.item())
    return seen


@case("stype", "the stype of a variable of shape .* is another one")
def stype(build):
    w = variable(np.ones((3, 2)))

    def step():
        with cg.record(): loss = cg.embedding(cg.tensor([1, 1]), w).sum()
        loss.backward()
    run, seen = build(step), []
    run()
    seen.append(type(w.grad).__name__)
    w.attach_grad(stype="row_sparse")
    run()
    dense = w.grad.to_dense() if isinstance(w.grad, cg.GradientSlice) else w.grad
    return *seen, type(w.grad).__name__, dense.tolist()


# ---- the thread and the process --------------------------------------------------------------------------------------

@case("mode", "this thread is in train mode and was in predict mode")
def mode(build):
    def forward(x): return cg.dropout(x, 0.5)
    if build is net:
        made, workspace = Net("dropout"), Workspace()
        made.dropout("x", "y", p=0.5)

        def run(x):
            workspace.feed("x", x)
            workspace.run(made)
            return workspace.fetch("y")
    else: run = build(forward, ((64,), "float32"))
    x, seen = np.ones(64, "float32"), []
    for training in (False, True, False, True):
        cg.random.seed(int(training))
        with cg.train_mode() if training else cg.predict_mode(): seen.append(run(x).tolist())
    return seen


@case("mode")
def mode_of_the_function(build):
    """A function that sets its mode does not depend on that of the thread."""
    def forward(x):
        with cg.train_mode(): return cg.dropout(x, 0.5)
    run, x = build(forward, ((64,), "float32")), np.ones(64, "float32")
    cg.random.seed(0)
    with cg.predict_mode(): first = run(x).tolist()
    with cg.train_mode(): return first, run(x).tolist()


@case("recording")
def recording(build):
    w = variable()
    run = build(lambda x: (w * x).detach(), ((1,), "float32"))
    run(np.float32([1]))
    with cg.record() as tape: y = run(np.float32([2]))
    return y.tolist(), y.requires_grad, tape.nodes if build is not eager else 0


@case("default dtype", "the default dtype is float64 and was float32")
def default_dtype(build):
    if build is net:                                # (a capture would list a cast to the dtype of that time)
        made, workspace = Net("div"), Workspace()
        made.div(["x", "x"], "y")

        def run(x):
            workspace.feed("x", x)
            workspace.run(made)
            return workspace.fetch("y")
    else: run = build(lambda x: x / x, ((1,), "int64"))
    seen = []
    for dtype in ("float32", "float64", "float32"):
        cg.set_default_dtype(dtype)
        try: seen.append(str(run(np.int64([3])).dtype))
        finally: cg.set_default_dtype("float32")
    return seen


@case("default dtype")
def default_dtype_unused(build):
    w = variable()
    run = build(loss_of(w))
    cg.set_default_dtype("float64")
    try: run()
    finally: cg.set_default_dtype("float32")
    return w.grad.item()


@case("number of threads")
def threads(build):
    x = np.random.default_rng(0).normal(size=(4, 4, 64, 64)).astype("float32")
    before = cg.get_num_threads()
    cg.set_num_threads(1)
    try:
        run, seen = build(lambda x: cg.interpolate(x, scale_factor=2, mode="bilinear"), (x.shape, "float32")), []
        for n in (1, 2, 1):
            cg.set_num_threads(n)
            seen.append(run(x).numpy().tobytes())
    finally: cg.set_num_threads(before)
    return seen


# ---- solvers and generators ------------------------------------------------------------------------------------------

def trained(*variables, **arguments):
    solver = cg.optim.Adam(0.1, **arguments)
    solver.set_parameters({"a": variables[0]})

    def step():
        solver.zero_grad()
        with cg.record(): loss = sum(x.sum() * (k + 2) for k, x in enumerate(variables))
        loss.backward()
        solver.update()
    return solver, step


@case("solver parameters", "the parameters of the solver Adam are other ones")
def parameters(build):
    a, b = variable(), variable()
    solver, step = trained(a, b)
    run, seen = build(step), []
    for change in (lambda: None, lambda: solver.set_parameters({"b": b}, reset=False),
                   lambda: solver.remove_parameters("a"), lambda: solver.add_param_group({"params": [a], "lr": 0.5})):
        change()
        run()
        run()
        seen.append((a.item(), b.item(), a.grad.item(), b.grad.item()))
    return seen


@case("solver parameters", "the parameters of the solver Sgd are other ones")
def zeroed(build):
    a, b = variable(grad_req="add"), variable(grad_req="add")
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters({"a": a})

    def step():
        solver.zero_grad()
        with cg.record(): loss = (a * 2 + b).sum()
        loss.backward()
    run, seen = build(step), []
    for _ in range(2):
        run()
        run()
        seen.append((a.grad.item(), b.grad.item()))
        solver.set_parameters({"b": b})
    return seen


@case("solver settings")
def settings(build):
    a = variable([1.0, -2.0])
    solver, step = trained(a, weight_decay=0.1)
    run, seen = build(step), []
    for change in (lambda: None, lambda: solver.set_learning_rate(0.5), lambda: solver.weight_decay(0.25),
                   lambda: solver.param_groups[0].__setitem__("weight_decay", 0.5),
                   lambda: solver.load_state_dict(solver.state_dict())):
        change()
        run()
        seen.append((a.tolist(), [(s.t, s.pstate["m"].tolist()) for s in solver.get_states().values()]))
    return seen


@case("generators")
def generators(build):
    g = cg.random.Generator(1)
    cg.random.seed(5)

    def draw(): return g.normal((3,)) + cg.random.uniform((3,))
    run, seen = build(draw), []
    state = g.state
    for change in (lambda: None, lambda: cg.random.seed(5), lambda: setattr(g, "state", state),
                   lambda: setattr(g, "state", (7, 9))):
        change()
        seen.append(run().tolist())
    return seen


# ---- values and gradients --------------------------------------------------------------------------------------------

@case("values")
def values(build):
    w, norm, seen = variable([1.0, 2.0]), cg.nn.BatchNorm1d(2), []

    def step(x):
        with cg.record(): loss = (norm(x) * w).square().sum()
        loss.backward()
    run = build(step, ((2, 2), "float32"))
    for k in range(3):
        w.copy_(cg.tensor([k, -1.0]))
        run(np.float32([[k, 1], [2, 3]]))
        seen.append((w.grad.tolist(), norm.running_mean.tolist()))
    return seen


@case(".grad")
def gradients(build):
    w, seen = variable([2.0], grad_req="add"), []
    run, mine = build(loss_of(w)), cg.tensor([7.0])

    def with_graph():
        with cg.record(): loss = (w * w).sum()
        loss.backward(create_graph=True)
    for change in (lambda: None, lambda: setattr(w, "grad", None), w.zero_grad, with_graph,
                   lambda: setattr(w, "grad", cg.tensor([5.0])), lambda: cg.mark_variables(w, mine, "add")):
        change()
        run()
        seen.append((w.grad.item(), w.grad.requires_grad, w.grad is mine, w.fresh_grad))
    return seen


@case(".grad")
def negative_zeros(build):
    w = cg.tensor([3.0], requires_grad=True)
    run, seen = build(loss_of(w, -0.0)), []
    for _ in range(2):
        run()
        seen.append(str(w.grad.numpy()))
    w.grad = None
    run()
    return *seen, str(w.grad.numpy())


@case(".grad")
def gradient_that_others_have(build):
    """A step that sets .grad to None makes a new one, so one that others refer to keeps its values."""
    w, seen, held = variable(), [], []

    def step():
        w.grad = None
        with cg.record(): loss = (w * w).sum()
        loss.backward()
    run = build(step)
    for _ in range(3):
        run()
        held.append(w.grad)
        w.copy_(w + 1)
        seen.append([g.item() for g in held])
    return seen, len({*map(id, held)})


@case(".grad that gets rows", "the .grad of a variable of shape .*, to which rows are added, is a tensor and was none")
def rows(build):
    w, x = cg.ones((3, 2)).attach_grad(), cg.tensor([1, 1])
    w.grad = None

    def forward(x):
        with cg.record(): return cg.embedding(x, w, sparse=True).sum()
    if build is net:
        with cg.record(): made, workspace = Net.capture(forward, x), Workspace()
        made.add_gradient_operators([*made.outputs], bind=True)
        workspace.feed("x", x)

        def run(x): workspace.run(made)
    else: run = build(lambda x: forward(x).backward(), x)
    seen = []
    for grad in (None, cg.ones((3, 2)), None, cg.ones((3, 2))):
        w.grad = grad
        for _ in range(2):
            run(x)
            sparse = isinstance(w.grad, cg.GradientSlice)
            seen.append((sparse, (w.grad.to_dense() if sparse else w.grad).tolist()))
    return seen


@case("fresh_grad")
def freshness(build):
    """Of variables that a step reaches, sets to None, zeroes, or only reads."""
    w, gone, zeroed, used = (variable() for _ in range(4))
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters({"w": w, "gone": gone, "zeroed": zeroed, "used": used})

    def step():
        gone.grad = None
        zeroed.zero_grad()
        with cg.record(): loss = (w * 2 + used.detach()).sum()
        loss.backward()
        solver.update()
    run, seen, everything = build(step), [], (w, gone, zeroed, used)
    run()
    for fresh in (True, False):
        for x in everything:
            x.grad = cg.tensor([3.0])
            x.fresh_grad = fresh
        run()
        seen.append([(x.item(), x.fresh_grad, None if x.grad is None else x.grad.item()) for x in everything])
    return seen


@case("fresh_grad")
def none_that_a_step_does_not_reach(build):
    w, other = variable(), variable()

    def step():
        for x in (w, other): x.grad = None
        loss_of(w)()
    run, seen = build(step), []
    for fresh in (False, True, False, True):
        loss_of(other)()
        other.fresh_grad = fresh
        other.grad = None
        run()
        seen.append((w.fresh_grad, other.fresh_grad, other.grad))
    return seen


@case("fresh_grad")
def incomplete(build):
    def interrupted(): raise KeyError
    seen = []
    for req in ("add", "write"):
        w = variable(grad_req=req)
        solver = cg.optim.Sgd(1.0)
        solver.set_parameters([w])
        run = build(loss_of(w))
        run()
        for _ in range(2):
            with cg.record():
                part = cg.exp(w)
                loss = (part + cg.sin(w)).sum()
            part.register_hook(lambda g: interrupted())
            with pytest.raises(KeyError): loss.backward()
            del part, loss
            run()
            seen.append((w.fresh_grad, outcome(solver.update)))
            w.zero_grad()
            run()
            seen.append((w.fresh_grad, outcome(solver.update), w.item()))
    return seen


@case("versions", "a tensor that mul, recorded outside, needs was written")
def versions(build):
    w = variable([2.0], grad_req="add")
    with cg.record(): z = w * w
    run = older(build, z)
    run()
    run()
    w.copy_(cg.tensor([5.0]))
    try: run()
    except cg.InplaceError: return w.grad.item(), "refused"
    return None


@case("versions", "the graph of mul, recorded outside, was freed")
def freed_graphs(build):
    w = variable([2.0], grad_req="add")
    with cg.record(): z = w * w
    run = older(build, z)
    run()
    z.backward()
    try: run()
    except cg.GraphFreedError: return w.grad.item(), "refused"
    return None


# ---- memory ----------------------------------------------------------------------------------------------------------

@case("memory.limit")
def limit(build):
    run, x = build(lambda x: cg.exp(x) * x, ((100_000,), "float32")), np.ones(100_000, "float32")
    cg.memory.empty_cache()
    with cg.memory.limit(cg.memory.stats()["live_bytes"] + cg.memory.stats()["cached_bytes"] + 1000):
        with pytest.raises(cg.MemoryLimitError): run(x)
    return run(x)[:2].tolist()


@case("memory.scope")
def scope(build):
    w, x = variable([1.0, 2.0]), np.float32([3, 4])

    def step(x):
        with cg.record(): loss = (w * x).sum()
        loss.backward()
    run = build(step, ((2,), "float32"))
    with cg.memory.scope(): run(x)
    first = w.grad.tolist()
    noise = [cg.ones(2) for _ in range(8)]
    run(x)
    return first, w.grad.tolist(), [y.tolist() for y in noise]
