"""memory.plan(): the peak that the call then has, byte for byte, and nothing has changed before it.

CYGRAD_PROGRAMS of at least 10,000 plans every sample of every row in both dtypes, else one in eight."""

import os

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.program import Program
from cygrad.core.store.buffer import real_allocations_of_traces
from cygrad.testing import fail_allocation
from rows import CASES, floating_places, in_dtype, is_array, tensors

WHOLE = int(os.environ.get("CYGRAD_PROGRAMS", "1000")) >= 10_000
SAMPLES = CASES if WHOLE else CASES[::2]

# Rows that take real memory while they are planned, and the reason.
REAL = {"ctc_loss": "the labels are read in Python", "put": "the indices are a constant that is made in Python",
        "batch_norm_predict": "its sample makes the running statistics"}


def unchanged(before, after):
    return {key: (before[key], after[key]) for key in before if key != "peak_bytes" and before[key] != after[key]}


def state_of(variables, values=True):
    """What a plan must not change, of tensors that may be variables. To read the values of a .grad of zeros gives it
    memory."""
    def of(g):
        if g is None: return None
        if isinstance(g, cg.GradientSlice): return id(g), id(g.values), g.values.tolist(), g.indices.tolist()
        return id(g), g.version, g.tolist() if values else None

    return [(x.version, x.fresh_grad if x.requires_grad else None, of(x.grad)) for x in variables]


def check(f, *xs, variables=(), times=2):
    """Plan and call f a few times: the second call finds what the first has left."""
    for turn in range(times):
        state, counter = state_of([*variables], turn > 0), cg.random.default_generator.state
        before = cg.memory.stats()
        plan = cg.memory.plan(f, *xs)
        assert not unchanged(before, cg.memory.stats())
        assert state == state_of([*variables], turn > 0) and counter == cg.random.default_generator.state
        with cg.memory.track() as measured: f(*xs)
        assert plan.peak_bytes == measured.peak_bytes


# ---- every row -------------------------------------------------------------------------------------------------------

def called(row, args, kwargs, leaves):
    def f(*xs):
        given, rest = list(args), iter(xs)
        for i in range(len(given)):
            if is_array(given[i]): given[i] = leaves.get(i, next(rest))
        with cg.record():
            y = row.tested(*given, **kwargs)
            if leaves: loss = (y * y).sum()
        if leaves: loss.backward()

    return f


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("row, args, kwargs", SAMPLES)
def test_every_row(row, args, kwargs, backward):
    places = floating_places(args)
    if backward and not (row.operator.differentiable and places): return
    for dtype in ("float32", "float64") if WHOLE else ("float32",):
        args = in_dtype(args, dtype)
        leaves = {i: cg.tensor(args[i]).attach_grad() for i in places} if backward else {}
        f, xs = called(row, args, kwargs, leaves), [x for x in tensors(args) if isinstance(x, cg.Tensor)]
        real = real_allocations_of_traces()
        if row.operator.data_dependent_shape or backward and row.name == "mask_put":
            with pytest.raises(RuntimeError, match="memory.plan: a result whose shape depends on values"):
                cg.memory.plan(f, *xs)
            return
        check(f, *xs, variables=[*xs, *leaves.values()])
        assert real_allocations_of_traces() == real or row.name in REAL


# ---- models ----------------------------------------------------------------------------------------------------------

class Language(nn.Module):
    def __init__(self, body, sparse=False):
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(50, 16, sparse=sparse), body, nn.Linear(16, 50)

    def forward(self, x):
        y = self.body(self.embedding(x))
        return self.head(y[0] if isinstance(y, tuple) else y).reshape(-1, 50)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, dropout=0.1)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.feed = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        n = self.first(x)
        x = x + self.attention(n, n, n, need_weights=False)[0]
        return x + self.feed(self.second(x))


def model(name):
    """(model, input, labels)"""
    rng = np.random.default_rng(0)
    words, next_words = cg.tensor(rng.integers(0, 50, (4, 6))), cg.tensor(rng.integers(0, 50, 24))
    if name == "mlp":
        net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 10))
        return net, cg.tensor(rng.normal(size=(16, 20)).astype("f4")), cg.tensor(rng.integers(0, 10, 16))
    if name == "cnn":
        net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Dropout(0.3), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 25, 10))
        return net, cg.tensor(rng.normal(size=(4, 1, 14, 14)).astype("f4")), cg.tensor(rng.integers(0, 10, 4))
    body = {"lstm": lambda: nn.LSTM(16, 16, num_layers=2, dropout=0.1, batch_first=True),
            "gru": lambda: nn.GRU(16, 16, batch_first=True), "transformer": lambda: nn.Sequential(Block(), Block())}
    return Language(body[name]()), words, next_words


MODELS = ("mlp", "cnn", "lstm", "gru", "transformer")


def training(net, solver, zero):
    solver.set_parameters(dict(net.named_parameters()))

    def step(x, labels):
        if zero == "net": net.zero_grad()
        if zero == "solver": solver.zero_grad()
        with cg.record(): loss = cg.cross_entropy(net(x), labels)
        loss.backward()
        solver.update()

    return step


@pytest.mark.parametrize("zero", ["net", "solver", None])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("solver", [cg.optim.Adam, cg.optim.Sgd])
def test_models(name, solver, zero):
    net, x, labels = model(name)
    solver = solver(0.01)
    step = training(net, solver, zero)
    states = solver.get_states
    t = [s.t for s in states().values()]
    cg.memory.plan(step, x, labels)
    assert t == [s.t for s in states().values()]
    assert all(not v.numpy().any() for s in states().values() for v in s.pstate.values())
    check(step, x, labels, variables=[*net.parameters(), *net.buffers()], times=3)


def test_what_is_larger_than_the_memory():
    """Petabytes, since only the shapes matter."""
    net = nn.Sequential(nn.Linear(10, 1000), nn.ReLU(), nn.Linear(1000, 1))
    x = cg.zeros((1, 10)).broadcast_to((1 << 30, 10))
    real = real_allocations_of_traces()

    def step(x):
        with cg.record(): y = net(x).sum()
        y.backward()

    assert cg.memory.plan(step, x).peak_bytes > 4000 << 30
    assert real_allocations_of_traces() == real


# ---- gradients -------------------------------------------------------------------------------------------------------

def product(w, **options):
    def f(x):
        with cg.record(): y = (w * x * w).sum()
        y.backward(**options)
    return f


def kept(w): return [w.grad]


def view(w):
    whole = cg.zeros((2, 4))
    w.grad = whole[0]
    return [whole]


def of_numpy(w):
    w.grad = cg.asarray(np.ones(4, "f4"))


def strided(w):
    w.grad = cg.zeros((4, 2))[:, 0]


def marked(w): cg.mark_variables(w, cg.ones(4), w.grad_req)


@pytest.mark.parametrize("before", [
    lambda w: None, lambda w: setattr(w, "grad", None), lambda w: setattr(w, "grad", cg.ones(4)), kept, view, of_numpy,
    strided, marked, lambda w: product(w)(cg.ones(4)), lambda w: product(w, create_graph=True)(cg.ones(4)),
], ids=["zeros", "none", "tensor", "kept", "view", "numpy", "strided", "marked", "fresh", "graph"])
@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"retain_graph": True}],
                         ids=["plain", "graph", "retain"])
def test_gradients(before, req, options):
    w = cg.tensor([1.0, 2.0, 3.0, 4.0]).attach_grad(req)
    _held = before(w)
    if before is marked and "create_graph" in options: return       # (it would replace the caller's tensor)
    check(product(w, **options), cg.ones(4), variables=[w], times=3)
    w.grad = None                                   # (it may have a graph, which refers to w)


@pytest.mark.parametrize("req", ["write", "add"])
def test_a_gradient_that_is_replaced_is_released(req):
    """With create_graph a new .grad replaces the old one, whose memory is free then. (But not that of its graph.)"""
    w = cg.ones(1000).attach_grad(req)

    def f(x):
        for _ in range(3):
            with cg.record(): y = (w * w * x).sum()
            y.backward(create_graph=True)

    check(f, cg.ones(1000), variables=[w], times=1)
    w.grad = None

    def assigned(x):
        w.grad = x * 2
        w.grad = x * 3
        w.grad = None
        _more = x * 4

    w.grad = cg.ones(1000)
    check(assigned, cg.ones(1000), variables=[w], times=1)


def test_hooks():
    w = cg.ones(100).attach_grad()
    w.register_hook(lambda g: g * 2)
    seen = []
    w.register_post_accumulate_grad_hook(lambda x: seen.append(x.shape))

    def f(x):
        with cg.record():
            h = w * x
            h.register_hook(lambda g: g + 1)
            h.retain_grad()
            y = (h * h).sum()
        y.backward()

    check(f, cg.ones(100), variables=[w])
    assert seen == [(100,)] * 4


def test_functions():
    class Cube(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 3 * x * x

    w = cg.ones(100).attach_grad()

    def f(x):
        with cg.record(): y = (Cube.apply(w * x) * w).sum()
        y.backward()

    check(f, cg.ones(100), variables=[w])


def test_collectors_and_scopes():
    w, v = cg.ones(100).attach_grad(), cg.ones(100).attach_grad("add")

    def f(x):
        with cg.autograd.GradientCollector(), cg.memory.scope() as scope:
            for _ in range(2):
                with cg.record(): y = (w * v * x).sum()
                y.backward()
            scope.keep(x * 2)
        return x * 3

    check(f, cg.ones(100), variables=[w, v], times=3)


def test_hooks_of_saved_tensors():
    w = cg.ones(100).attach_grad()

    def f(x, pack=lambda t: t):
        with cg.autograd.saved_tensors_hooks(pack, lambda t: t), cg.record(): y = (w * x * w).sum()
        y.backward()

    check(f, cg.ones(100), variables=[w])
    for trace, text in ((cg.memory.plan, "^memory.plan: numpy"), (Program, "^capture: numpy")):
        with pytest.raises(RuntimeError, match=text): trace(lambda x: f(x, lambda t: t.numpy()), cg.ones(100))


def test_variables_made_inside():
    outer = cg.ones(100)

    def f(x):
        a, b = x.detach().attach_grad(), cg.ones(100).requires_grad_()
        with cg.record(): y = (a * b * a * outer).sum()
        y.backward()
        g = a.grad * 2
        del a
        return g + b.grad

    check(f, cg.ones(100), variables=[outer])
    x = cg.ones(100)
    cg.memory.plan(lambda: x.attach_grad("add"))
    assert not x.requires_grad and x.grad is None
    w = cg.ones(3).attach_grad("add")
    cg.memory.plan(lambda: (w.drop_grad(), w.attach_grad("null"), w.attach_grad("write")))
    assert w.requires_grad and w.grad_req == "add" and w.grad.tolist() == [0, 0, 0]


# ---- errors ----------------------------------------------------------------------------------------------------------

class Stop(Exception):
    pass


def stop(*_):
    raise Stop


@pytest.mark.parametrize("where", ["forward", "backward", "deposit", "update", "end"])
def test_an_error_changes_nothing(where):
    net, x, labels = model("cnn")
    solver = cg.optim.Adam(0.01)
    step = training(net, solver, "solver")
    step(x, labels)
    values = [p.numpy().copy() for p in net.parameters()]
    first = next(net.parameters())
    hook = None
    if where == "forward": hook = net[5].register_forward_pre_hook(stop)
    if where == "backward": hook = first.register_hook(stop)
    if where == "deposit": hook = first.register_post_accumulate_grad_hook(stop)

    def f(x, labels):
        step(x, labels)
        if where == "update": cg.optim.Sgd().update()       # (it has no parameters)
        if where == "end": stop()

    state, counter, before = state_of(net.parameters()), cg.random.default_generator.state, cg.memory.stats()
    try: cg.memory.plan(f, x, labels)
    except (Stop, RuntimeError) as e: assert where == "update" or isinstance(e, Stop)
    else: raise AssertionError("nothing was raised")
    assert not unchanged(before, cg.memory.stats())
    assert state == state_of(net.parameters()) and counter == cg.random.default_generator.state
    assert all(np.array_equal(a, p.numpy()) for a, p in zip(values, net.parameters(), strict=True))
    if hook is not None: hook.remove()


@pytest.mark.parametrize("trace", [cg.memory.plan, Program], ids=["plan", "program"])
def test_failed_allocations_leave_nothing(trace):
    """Each allocation fails in turn."""
    net, x, labels = model("mlp")
    step = training(net, cg.optim.Adam(0.01), None)
    step(x, labels)
    trace(step, x, labels)
    state, before = state_of(net.parameters()), cg.memory.stats()
    failed = 0
    for n in range(1, 80):                          # (memory that is not needed, such as that of sign bits, may fail)
        try:
            with fail_allocation(n): trace(step, x, labels)
        except MemoryError: failed += 1
        assert not {k: v for k, v in unchanged(before, cg.memory.stats()).items() if k.startswith("live")}, n
        assert state == state_of(net.parameters())
    assert failed > 10
    check(step, x, labels, variables=[*net.parameters()], times=1)


def test_a_profile_of_the_plan():
    w = cg.ones(1000).attach_grad()
    profile = cg.memory.plan(product(w), cg.ones(1000))
    assert profile.peak_bytes == 12_000 + 4 or profile.peak_bytes > 8000
    assert {row.category for row in profile.at_peak()} >= {"parameters"} or profile.at_peak()
