"""Writes to results of which backward needs the elements: which programs PyTorch accepts, and what they give."""

import itertools

import pytest

import cygrad as cg

X, Y = [1.5, 2.5, -0.75], [2.0, -1.25, 3.0]


class InCygrad:
    scope = staticmethod(cg.record)

    def variable(self, values):
        return cg.tensor(values, dtype="float64").requires_grad_()

    def constant(self, values):
        return cg.tensor(values, dtype="float64")

    def unary(self, name):
        return getattr(cg, name)


class InTorch:
    def __init__(self):
        import torch

        self.torch, self.scope = torch, torch.enable_grad

    def variable(self, values):
        return self.constant(values).requires_grad_()

    def constant(self, values):
        return self.torch.tensor(values, dtype=self.torch.float64)

    def unary(self, name):
        return getattr(self.torch.nn.functional, name, None) or getattr(self.torch, name)


# ---- first a write or an operation, then a write ---------------------------------------------------------------------

def iadd(a, b): a += b
def isub(a, b): a -= b
def imul(a, b): a *= b
def idiv(a, b): a /= b
def imod(a, b): a %= b
def by_number(a, b): a /= 2.0
def by_itself(a, b): a /= a
def set_part(a, b): a[1:] = b[1:]
def set_all(a, b): a[...] = b
def copy(a, b): a.copy_(b)
def fill(a, b): a.fill_(2.0)
def part_times(a, b): a[1:] *= b[1:]
def part_over(a, b): a[1:] /= b[1:]


def parts_over(a, b):
    a[0] /= b[0]
    a[1:] /= b[:2]
    a[:2] /= b[1:]


def view_over(a, b):
    v = a[1:]
    v /= b[1:]
    v *= 2.0


def quotient(a, b): return a / b
def product(a, b): return a * b


def written_view(t):
    v = t[:2]
    v += 1.0


def written_twice(t):
    t[0] = 2.0
    t[1] = 3.0


def add(t): t += 1.0
def multiply(t): t *= 3.0
def divide(t): t /= 3.0
def put(t): t[0] = 1.0
def put_all(t): t[...] = 1.0
def refill(t): t.fill_(0.5)


FIRST = [iadd, isub, imul, idiv, imod, by_number, by_itself, set_part, set_all, copy, fill, part_times, part_over,
         parts_over, view_over, quotient, product]
WRITES = [add, multiply, divide, put, put_all, refill, written_view, written_twice]


def gradients(m, first, write, which, tracked):
    """The gradients of x and y after `first` and then `write` to its result "r" or its second operand "b"; or None if
    the pass is refused. `tracked`: whether gradients flow to each."""
    x, y = m.variable(X), m.variable(Y)
    with m.scope():
        a = x * 1.0 if tracked[0] else m.constant(X)
        b = y * 1.0 if tracked[1] else m.constant(Y)
        r = first(a, b)
        if r is None: r = a
        write(r if which == "r" else b)
        z = (r * 1.0).sum() + (b * 1.0).sum()
    if not z.requires_grad: return "no graph"
    try: z.backward()
    except RuntimeError: return None
    return [None if v.grad is None else [round(g, 9) + 0 for g in v.grad.tolist()] for v in (x, y)]


@pytest.mark.parametrize("first", FIRST, ids=lambda f: f.__name__)
def test_programs_that_pytorch_accepts_are_accepted(first):
    accepted, wrong = 0, []
    for write, which, tracked in itertools.product(WRITES, "rb", [(1, 1), (1, 0), (0, 1)]):
        ours, theirs = (gradients(m, first, write, which, tracked) for m in (InCygrad(), InTorch()))
        if theirs is None: continue                 # (what PyTorch refuses may be accepted, as writes to a after a / b)
        accepted += 1
        if ours != theirs: wrong.append((write.__name__, which, tracked, ours, theirs))
    assert wrong == [] and accepted >= 16


# operators of one operand that save their result, and whether PyTorch does
UNARY = {"softplus": False, "leaky_relu": False, "elu": False, "selu": False, "celu": False, "softsign": False,
         "logsigmoid": False, "exp": True, "tanh": True, "sigmoid": True, "relu": True, "expm1": True, "exp2": True}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_a_written_result_of_one_operand(name, write):
    def first(m):
        return lambda a, b: m.unary(name)(a)

    ours, theirs = (gradients(m, first(m), write, "r", (1, 0)) for m in (InCygrad(), InTorch()))
    assert ours == theirs and (theirs is None) == UNARY[name]


# ---- memory ----------------------------------------------------------------------------------------------------------

def saved():
    return cg.memory.stats()["by_category"]["saved"]


def test_a_quotient_is_copied_only_when_it_is_written():
    x, y = cg.ones(1000).requires_grad_(), cg.full(1000, 2.0).requires_grad_()
    with cg.record():
        a = x * 1.0
        live = cg.memory.stats()["live_bytes"]
        a /= y
        assert cg.memory.stats()["live_bytes"] == live and saved() == 4000      # the result itself
        a += 1.0
        assert cg.memory.stats()["live_bytes"] == live + 4000 and saved() == 4000
        a[0] = 3.0                                  # it has its copy already
        a *= 2.0
        assert cg.memory.stats()["live_bytes"] == live + 4000
    a.backward(cg.ones(1000))
    assert y.grad.tolist() == [0.0] + [-0.5] * 999 and x.grad.tolist() == [0.0] + [1.0] * 999


def test_a_part_that_was_divided_is_copied_alone():
    x, y = cg.ones(1000).requires_grad_(), cg.full(10, 2.0).requires_grad_()
    with cg.record():
        a = x * 1.0
        live = cg.memory.stats()["live_bytes"]
        for k in range(0, 1000, 10): a[k:k + 10] /= y
        assert cg.memory.stats()["live_bytes"] <= live + 1000 * 4
    a.backward(cg.ones(1000))
    assert y.grad.tolist() == [-25.0] * 10


def test_results_that_backward_needs_are_not_copied():
    x = cg.ones(3).requires_grad_()
    with cg.record():
        y = cg.exp(x)
        y += 1
    with pytest.raises(cg.InplaceError, match="exp saved a tensor"): y.backward(cg.ones(3))


def test_a_written_quotient_and_further_derivatives():
    x, y = cg.tensor([1.0, 2.0]).requires_grad_(), cg.tensor([2.0, 4.0]).requires_grad_()
    with cg.record():
        z = x / y
        z *= z.detach().copy()
        g, = cg.autograd.grad(z.sum(), [y], create_graph=True)      # -x / y^2 c, c = x / y a constant
        g.sum().backward()
    assert y.grad.tolist() == [2 * 1 / 8 * 0.5, 2 * 2 / 64 * 0.5]
    x.grad = y.grad = None


def test_no_memory_for_the_copy_changes_nothing():
    x, y = cg.ones(1000).requires_grad_(), cg.full(1000, 2.0).requires_grad_()
    with cg.record():
        a = x / y
        with cg.testing.fail_allocation(1), pytest.raises(MemoryError): a += 1.0
        assert a.tolist() == [0.5] * 1000
    a.backward(cg.ones(1000))
    assert y.grad.tolist() == [-0.25] * 1000


SCOPES = {
    "budget": lambda folder: cg.memory.budget("1MiB"), "profile": lambda folder: cg.memory.profile(),
    "budget on disk": lambda folder: cg.memory.budget("1MiB", offload=folder),
    "detect_anomaly": lambda folder: cg.autograd.detect_anomaly(),
    "offload": lambda folder: cg.memory.offload(folder, smallest=1),
    "saved_tensors_hooks": lambda folder: cg.autograd.saved_tensors_hooks(lambda t: t.numpy().copy(), cg.asarray),
}


def quotient_that_is_written(x, y):
    a = x * 1.0
    a /= y
    a[0] = 1.0
    b = a / y
    b += 1.0
    return b


@pytest.mark.parametrize("scope", SCOPES)
def test_written_quotients_in_scopes(scope, tmp_path):
    x, y = cg.ones(1000).requires_grad_(), cg.full(1000, 2.0).requires_grad_()
    for _ in range(3):
        y.grad = None
        with SCOPES[scope](tmp_path):
            with cg.record(): b = quotient_that_is_written(x, y)
            b.backward(cg.ones(1000))
        assert y.grad.tolist() == [-0.25] + [-0.25] * 999


def test_written_quotients_in_a_checkpoint():
    x, y = cg.ones(1000).requires_grad_(), cg.full(1000, 2.0).requires_grad_()
    with cg.record(): b = cg.checkpoint(quotient_that_is_written, x, y)
    b.backward(cg.ones(1000))
    assert y.grad.tolist() == [-0.25] * 1000


def test_a_captured_function_that_writes_to_a_quotient():
    y = cg.full(4, 2.0).requires_grad_()

    def step(x):
        with cg.record():
            a = x / y
            a[0] = 1.0
            loss = (a * a).sum()
        loss.backward()
        return loss

    step(cg.ones(4))
    expected = y.grad.tolist()
    net = cg.graph.Net.capture(step, cg.ones(4))
    y.zero_grad()
    workspace = cg.graph.Workspace()
    workspace.feed("x", cg.ones(4).numpy())
    workspace.run(net)
    assert y.grad.tolist() == expected
