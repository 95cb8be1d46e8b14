"""No memory feature changes a gradient silently (M10). Cases from open reports about PyTorch, and others that write in
place, draw, or change the state between forward and backward, go through each feature and through pairs. Either the
gradients are those without a feature and without the writes, or an error names the write."""

from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.recipes import executed_recipes
from cygrad.graph import Net, Workspace

BUDGET = 3 << 20


class Case:
    """Variables of the given shapes; forward() gives a loss, between() runs before the last backward pass. `kept` are
    the values of forward() that between() writes. Without `writes`, forward() copies what it would overwrite."""

    shapes = {"x": (6, 8), "w": (8, 8)}
    written = True                                  # something is, so InplaceError is an answer
    passes = 1
    captured = True                                 # a net can do all of it
    layers = ()

    def __init__(self, writes=True):
        self.writes, self.kept = writes, []
        cg.random.seed(3)
        rng = np.random.default_rng(0)
        self.generator = cg.random.Generator(5)
        self.w = {name: cg.tensor(rng.normal(size=shape)).attach_grad("add") for name, shape in self.shapes.items()}
        self.c = cg.tensor(rng.normal(size=(6, 8)))

    def between(self): pass

    def after(self): return []

    def variables(self): return [*self.w.values(), *(w for layer in self.layers for w in layer.parameters())]


CASES = {}


def case(cls):
    CASES[cls.__name__] = cls
    return cls


def write(x, kind):
    """Each way to write in place, outside of record()."""
    with cg.no_grad():
        if kind == "add": x += 100
        elif kind == "item": x[1:, 2] = 7.0
        elif kind == "copy": x.copy_(x * 3 + 1)
        elif kind == "fill": x.fill_(2.5)
        else: x.T[3:] *= 2


# ---- written between forward and backward ----------------------------------------------------------------------------

@case
class Activation(Case):
    """PyTorch 2.13 gives 408 for 8 in hooks: the square reads 102 for 2."""

    how = "add"

    def forward(self):
        a = self.w["x"] * 2
        self.kept.append(a.detach())
        return (a * a).sum()

    def between(self): write(self.kept[0], self.how)


@case
class PartOfAnActivation(Activation): how = "item"


@case
class ViewOfAnActivation(Activation): how = "view"


@case
class Result(Activation):
    """exp saves what it returns, and so do softmax and the norm."""

    how = "copy"

    def forward(self):
        a = cg.exp(cg.tanh(self.w["x"] @ self.w["w"]))
        self.kept.append(a.detach())
        return (cg.softmax(cg.layer_norm(a, axes=(-1,))) * self.c).sum()


@case
class Operand(Case):
    """A tensor without gradients, read by a product and by what a recipe makes again."""

    how = "fill"

    def forward(self):
        y = cg.sin(cg.exp(self.w["x"] * self.c) + self.c)
        return (cg.tanh(y @ self.w["w"]) * self.c).sum()

    def between(self): write(self.c, self.how)


@case
class Parameter(Case):
    """An update between forward and backward, as from a second solver."""

    how = "add"

    def forward(self):
        w = self.w["w"]
        return (cg.tanh(cg.tanh(self.w["x"] @ w) @ w)).sum()

    def between(self): write(self.w["w"], self.how)


@case
class ParameterBetweenPasses(Parameter):
    """The second pass over a retained graph reads the parameter that was updated after the first one."""

    passes = 2
    how = "view"


@case
class SolverBetweenPasses(Parameter):
    """As two losses that share a model: the update of the first, then the pass of the second."""

    passes = 2

    def __init__(self, writes=True):
        super().__init__(writes)
        self.solver = cg.optim.Momentum(0.1)
        self.solver.set_parameters({"w": self.w["w"]})

    def between(self): self.solver.update()


@case
class OperandOfWhatIsMadeAgain(Operand):
    """A sum does not save its operand, but exp(x + c) cannot be made again without the old c."""

    def forward(self): return cg.sin(cg.exp(self.w["x"] + self.c)).sum()


@case
class IndicesAndMasks(Case):
    """Integers and bools that backward reads, in operators that save nothing else."""

    def forward(self):
        x, w = self.w["x"], self.w["w"]
        self.kept += [cg.tensor([1, 7, 1, 0, 2, 2]), self.c > 0]
        rows = cg.embedding(self.kept[0], w)
        return (cg.where(self.kept[1], rows, x)).sum() + cg.cross_entropy(rows * x, self.kept[0])

    def between(self):
        self.kept[0][...] = cg.tensor([3, 3, 4, 4, 5, 6])
        self.kept[1][...] = False


class Product(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


@case
class SavedByAFunction(Activation):
    captured = False

    def forward(self):
        a = self.w["x"] * 2
        self.kept.append(a.detach())
        return Product.apply(a, cg.sin(self.w["x"])).sum()


@case
class NothingThatIsNeeded(Operand):
    """A sum does not need its operands, so the write is allowed where nothing is made again from them."""

    def forward(self): return (self.w["x"] + self.c).sum()


@case
class WrittenWhileRecorded(Case):
    """Recorded writes after values were saved: to a value, a part of it, and a view."""

    def forward(self):
        a = self.w["x"] * 2
        b = cg.sin(a if self.writes else a.copy())  # saves its operand
        a += b
        a.T[1:] *= 0.5
        a[2] = self.c[1]
        return (cg.exp(a * 0.1) @ self.w["w"]).sum()


@case
class WrittenForGood(WrittenWhileRecorded):
    """The same without the value that was saved before: a right gradient everywhere."""

    written = False

    def forward(self):
        a = self.w["x"] * 2
        a += self.c
        a.T[1:] *= 0.5
        a[2] = self.c[1]
        return (cg.exp(a * 0.1) @ self.w["w"]).sum()


# ---- what operators make beside their results, draws, and the state of the process -----------------------------------

@case
class BesideResults(Case):
    """Random masks, places, statistics and states are saved when their kernel has filled them (pytorch#193671: noise
    that a hook copies, or a checkpoint stops at, before it is there)."""

    written = False
    shapes = {"x": (4, 2, 8, 8), "w": (16, 32), "v": (16, 4), "b": (16,)}

    def forward(self):
        x, w, v, b = (self.w[n] for n in ("x", "w", "v", "b"))
        y = cg.dropout(cg.batch_norm(x * 1.5, training=True), 0.3)
        y = cg.max_pool2d(cg.leaky_relu(y), 2).reshape((4, 32))
        y = cg.group_norm(cg.dropout(cg.linear(y, w), 0.5, self.generator), 4)
        q = y.reshape((4, 1, 4, 4))
        y = cg.scaled_dot_product_attention(q, q * 2, cg.relu(q), dropout_p=0.4).reshape((4, 16))
        y = cg.sort(y, -1) + cg.cummax(y * b, -1)[0]
        return (cg.logsumexp(y @ v, -1) + y.max(-1) + cg.var(y, -1)).sum()


@case
class Recurrent(Case):
    """An LSTM keeps its gates."""

    written = False
    shapes = {"x": (5, 3, 4)}

    def __init__(self, writes=True):
        super().__init__(writes)
        self.layers = [nn.LSTM(4, 6, dtype="float64"), nn.GRU(6, 5, dtype="float64")]

    def forward(self):
        out = cg.tanh(self.w["x"])
        for layer in self.layers: out = cg.dropout(layer(out)[0], 0.2)
        return (out * out).sum()


@case
class DrawsBetween(BesideResults):
    """Other draws come between."""

    def between(self):
        cg.random.normal((5,))
        self.generator.normal((3,))


@case
class SeedBetween(BesideResults):
    captured = False

    def between(self):
        cg.random.seed(77)
        self.generator.state = 1, 2


@case
class StateBetween(BesideResults):
    """The mode and the default dtype change between."""

    def between(self):
        cg.set_training(False)
        cg.set_default_dtype("float64")


@case
class RunningStatistics(Case):
    """They move once a step, also where batch_norm is computed again."""

    written = False
    shapes = {"x": (16, 5), "w": (5, 5)}

    def __init__(self, writes=True):
        super().__init__(writes)
        self.kept += [cg.zeros(5, dtype="float64"), cg.ones(5, dtype="float64")]

    def forward(self):
        y = cg.batch_norm(self.w["x"] @ self.w["w"], *self.kept, training=True)
        return cg.exp(cg.sin(y)).sum()

    def after(self): return [x.numpy().copy() for x in self.kept]


@case
class Penalty(Case):
    """A gradient of a gradient, of values that are read twice."""

    written = False

    def forward(self):
        x, w = self.w["x"], self.w["w"]
        y = cg.tanh(cg.exp(x * 0.3) @ w).sum()
        g, = cg.autograd.grad(y, [x], create_graph=True)
        return (g * g).sum() + y


@case
class PenaltyOfWhatIsWritten(Penalty):
    """The parameter changes between the first gradient and the gradient of it."""

    written = True
    def between(self): write(self.w["w"], "item")


# ---- features --------------------------------------------------------------------------------------------------------

class Count:
    """How often a feature has done something."""

    n = 0


@contextmanager
def hooks(unpack, count, pack=lambda t: t):
    def packed(t):
        count.n += 1
        return pack(t)
    with cg.autograd.saved_tensors_hooks(packed, unpack): yield


@contextmanager
def offloaded(folder, count):
    # (in a limit, each value is written before the next operation)
    with cg.memory.limit("1TB"), cg.memory.offload(folder, smallest=0) as o: yield
    count.n += o.written_bytes


@contextmanager
def bounded(count):
    with cg.memory.budget(BUDGET) as b: yield
    count.n += b.recomputed.calls


def evict():
    """In a budget: nothing that can be evicted is left."""
    more = []
    with suppress(cg.MemoryLimitError):
        while True: more.append(cg.empty(16 << 10, "uint8"))


KEPT = ["matmul", "exp", "dropout", "var", "sort", "max_pool2d", "scaled_dot_product_attention", "layer_norm", "lstm"]
CALLS = {
    "checkpoint": cg.checkpoint, "hash": lambda f: cg.checkpoint(f, determinism_check="hash"),
    "keep": lambda f: cg.checkpoint(f, keep=KEPT), "nested": lambda f: cg.checkpoint(lambda: cg.checkpoint(f)),
}
FEATURES = [
    ("hooks",), ("copies",), ("checkpoint",), ("hash",), ("keep",), ("nested",), ("budget",), ("offload",), ("net",),
    ("fused",), ("checkpoint", "copies"), ("keep", "copies"), ("keep", "offload"), ("checkpoint", "budget"),
    ("offload", "budget"), ("keep", "budget", "fused"), ("net", "fused"), ("net", "checkpoint"), ("net", "budget"),
    ("budget", "fused"), ("offload", "fused"),
]


def run_net(step, features, count, gradients):
    net, ws, before = Net.capture(step), Workspace(), cg.memory.stats()["live_bytes"]
    if "budget" in features:
        for share in (0.6, 0.7, 0.8, 0.9, 0.99, 1):
            try: plan = net.plan(budget=int(share * net.plan().peak_bytes))
            except cg.MemoryLimitError: continue
            ws = Workspace(before + gradients + plan.peak_bytes)
            count.n += plan.recomputed.calls
            break
    ws.run(net)


def gradients(made, features, folder):
    """The gradients of a case with what it leaves (None: refused), and how much the features did."""
    count, call = Count(), next((CALLS[f] for f in features if f in CALLS), lambda f: f())
    solver, before = cg.optim.Sgd(lr=1.0), {}
    solver.set_parameters(made.w)
    recipes, eager = executed_recipes(), "net" not in features

    def now(): before.update((name, w.numpy().copy()) for name, w in made.w.items())

    def step():
        with ExitStack() as scopes, cg.train_mode():
            if "budget" in features and eager: scopes.enter_context(bounded(count))
            if "hooks" in features: scopes.enter_context(hooks(lambda t: t, count))
            if "copies" in features: scopes.enter_context(hooks(cg.tensor, count, lambda t: t.numpy().copy()))
            if "offload" in features: scopes.enter_context(offloaded(folder, count))
            with cg.record(): loss = call(made.forward)
            if "budget" in features and eager: evict()
            for k in range(made.passes):
                if made.writes and k == made.passes - 1: made.between()
                if eager: now()
                loss.backward(retain_graph=k < made.passes - 1)

    if "fused" in features: solver.fuse_into_backward()
    now()
    try:
        if eager: step()
        else: run_net(step, features, count, sum(w.nbytes for w in made.variables()))
    except cg.InplaceError as e:
        assert made.written and made.writes and "written in place" in str(e), str(e)
        return None, count
    except RuntimeError as e:
        if "fused" not in features or made.passes == 1 or "fuse_into_backward: retain_graph" not in str(e): raise
        return None, count
    finally:
        cg.set_training(False)
        cg.set_default_dtype("float32")
    count.n += executed_recipes() - recipes
    found = [before[name] - w.numpy() if "fused" in features else w.grad.numpy().copy() for name, w in made.w.items()]
    return found + made.after(), count


REFUSED = {                                         # what autograd refuses without a feature
    "Activation", "PartOfAnActivation", "ViewOfAnActivation", "Result", "Operand", "Parameter",
    "ParameterBetweenPasses", "SolverBetweenPasses", "IndicesAndMasks", "SavedByAFunction", "WrittenWhileRecorded",
    "PenaltyOfWhatIsWritten"}
NOTHING_TO_DO = [("net",), ("fused",), ("net", "fused")]


@pytest.mark.parametrize("features", [(), *FEATURES], ids="-".join)
def test_each_gradient_is_right_or_refused(features, tmp_path):
    """What is refused is refused without a feature, too, but for what checkpoint() would make again from an operand
    that was written."""
    refused = set()
    for name, made in CASES.items():
        if "net" in features and not made.captured: continue
        wanted, _ = gradients(made(writes=False), (), tmp_path)
        found, count = gradients(made(), features, tmp_path)
        if found is None:
            refused.add(name)
            continue
        for a, b in zip(wanted, found, strict=True): np.testing.assert_allclose(b, a, 1e-9, 1e-9, err_msg=name)
        if name == "BesideResults" and features and features not in NOTHING_TO_DO: assert count.n
    more = {"OperandOfWhatIsMadeAgain"} if {"checkpoint", "hash", "nested"} & {*features} else set()
    assert refused - more == REFUSED - ({"SavedByAFunction"} if "net" in features else set())


def test_hooks_around_a_checkpoint_see_nothing_of_it():
    """pytorch#191236: what a selective checkpoint keeps bypasses hooks. Here the innermost scope decides, as the
    docstrings of both say: hooks outside of checkpoint() pack nothing of f, and hooks in f pack all that it saves. A
    pack that would change values shows which."""
    def f(x): return cg.tanh(cg.sin(cg.exp(x) * 2))

    def packed(x):
        with hooks(lambda t: t * 0.01, count, lambda t: t * 100): return f(x)

    x, found = cg.tensor(np.linspace(-1, 1, 6)).attach_grad(), []
    for keep in (None, "exp", ["exp", "sin", "tanh"]):
        for inside in (False, True):
            count = Count()
            with cg.record():
                if inside: y = cg.checkpoint(packed, x, keep=keep)
                else:
                    with hooks(lambda t: 1 / 0, count): y = cg.checkpoint(f, x, keep=keep)
            y.backward(cg.ones(6, dtype="float64"))
            assert count.n == 3 * inside
            found.append(x.grad.numpy().copy())
    for g in found: np.testing.assert_allclose(g, found[0], 1e-12)


@pytest.mark.parametrize("f", [lambda x: x * x, lambda x: cg.exp(x * 1), lambda x: cg.sin(x * 2)])
def test_a_pack_that_writes_into_what_it_is_given(f):
    """pytorch#62717. It changes the value itself, so the operation that saves it has read another one."""
    def pack(t):
        t += 2
        return t - 2

    x = cg.ones(5).attach_grad()
    with cg.autograd.saved_tensors_hooks(pack, lambda t: t), cg.record(): y = f(x).sum()
    with pytest.raises(cg.InplaceError, match="written in place since"): y.backward()
