"""Full backward hooks of modules, as PyTorch calls them."""

import gc
import warnings

import pytest

import cygrad as cg
from cygrad import nn


class Pair:
    """forward(x, y, s) -> (x s, x + y), in either library."""

    def forward(self, x, y=None, s=2.0):
        return x * s, (x if y is None else x + y) * 1.0


class InCygrad:
    Pair = type("Pair", (Pair, nn.Module), {})
    scope, grad, nn, backward = staticmethod(cg.record), staticmethod(cg.autograd.grad), nn, staticmethod(cg.backward)

    def tensor(self, *values):
        return cg.tensor(list(values), dtype="float64")

    def linear(self):
        return nn.Linear(2, 1, dtype="float64")


class InTorch:
    def __init__(self):
        import torch

        self.Pair = type("Pair", (Pair, torch.nn.Module), {})
        self.scope, self.grad, self.backward = torch.enable_grad, torch.autograd.grad, torch.autograd.backward
        self.torch, self.nn = torch, torch.nn

    def tensor(self, *values):
        return self.torch.tensor(list(values), dtype=self.torch.float64)

    def linear(self):
        return self.torch.nn.Linear(2, 1).double()


def numbers(g):
    if isinstance(g, tuple | list): return tuple(map(numbers, g))
    return g if g is None else g.tolist()


def watched(m, events, before=None, after=None):
    """A Pair with hooks that note what they see; `before` and `after` give what they return."""
    module = m.Pair()

    def see_results(_, grads):
        events.append(("results", numbers(grads)))
        return before and before(grads)

    def see_inputs(_, inputs, grads):
        events.append(("inputs", numbers(inputs), numbers(grads)))
        return after and after(inputs)

    return module, module.register_full_backward_pre_hook(see_results), module.register_full_backward_hook(see_inputs)


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def arguments_of_all_kinds(m, events):
    """Tensors with and without a gradient, numbers, keywords; results that are used or not."""
    module, _, _ = watched(m, events)
    x, y, plain = (m.tensor(k, k + 1.0) for k in (1.0, 3.0, 5.0))
    x.requires_grad_()
    y.requires_grad_()
    for args, named in (((x, plain, 3.0), {}), ((x, y, 3.0), {}), ((x,), {"y": y}), ((x, y), {"s": 4.0}),
                        ((plain,), {"y": y}), ((plain, plain), {})):
        for weights in ((1, 0), (0, 1), (2, 3)):
            with m.scope():
                a, b = module(*args, **named)
                heads = [(r, k) for r, k in zip((a, b), weights, strict=True) if k and r.requires_grad]
                if not heads: continue
                z = sum((r * k).sum() for r, k in heads)
            z.backward()
            events.append(numbers([x.grad, y.grad]))
            x.grad = y.grad = None


@program
def replaced_gradients(m, events):
    module, _, _ = watched(m, events, lambda g: (g[0] * 5, g[1]), lambda i: (i[0] * 10, None))
    x, y = m.tensor(1.0, 2.0).requires_grad_(), m.tensor(3.0, 4.0).requires_grad_()
    with m.scope():
        a, b = module(x, y)
        z = (a + b + x * 100).sum()                 # x is used elsewhere too
    z.backward()
    events.append(numbers([x.grad, y.grad]))


@program
def order_prepend_and_removal(m, events):
    module = m.linear()
    note = lambda name: lambda *_: events.append(name)       # noqa: E731
    handles = [module.register_full_backward_hook(note("second")),
               module.register_full_backward_hook(note("first"), prepend=True),
               module.register_full_backward_pre_hook(note("pre 2")),
               module.register_full_backward_pre_hook(note("pre 1"), prepend=True),
               module.register_forward_hook(note("forward"))]
    x = m.tensor(1.0, 2.0).requires_grad_()
    with m.scope():
        y, z = module(x), module(x)
    handles[0].remove()                             # those of recorded calls stay
    y.backward()
    for handle in handles: handle.remove()
    with m.scope(): y = module(x)
    y.backward()
    z.backward()


@program
def several_passes_and_calls(m, events):
    module, _, _ = watched(m, events)
    x = m.tensor(1.0, 2.0).requires_grad_()
    with m.scope():
        a, b = module(x)
        c, _ = module(a)
        z = (c * c).sum()
    z.backward(retain_graph=True)
    z.backward(inputs=[x], retain_graph=True)
    m.grad(z, [a], retain_graph=True)
    z.backward()
    events.append(numbers(x.grad))


@program
def higher_derivatives(m, events):
    module, _, _ = watched(m, events)
    x = m.tensor(1.0, 2.0).requires_grad_()
    with m.scope():
        a, b = module(x)
        g, = m.grad((a * a * b).sum(), [x], create_graph=True)
        g.sum().backward()
    events.append(numbers([g, x.grad]))
    x.grad = None


@program
def results_of_other_types(m, events):
    class Several(m.nn.Module):
        def forward(self, x):
            return {"a": x * 2.0} if events else (x * 2.0, 3.0, None)

    module = Several()
    module.register_full_backward_hook(lambda *a: events.append(numbers(a[2][:1])))
    x = m.tensor(1.0, 2.0).requires_grad_()
    with m.scope(): module(x)[0].sum().backward()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with m.scope(): module(x)["a"].sum().backward()
    events.append(len(caught))


@program
def a_sequence_of_modules(m, events):
    net = m.nn.Sequential(m.linear(), m.nn.ReLU())
    for k, p in enumerate(net.parameters()):
        p.detach()[...] = 0.5 + k
    for name, part in (("net", net), ("linear", net[0]), ("relu", net[1])):
        part.register_full_backward_hook(lambda _, i, o, name=name: events.append((name, numbers(i), numbers(o))))
    with m.scope(): net(m.tensor(1.0, 2.0)).sum().backward()        # no gradient flows to the input
    with m.scope(): net(m.tensor(1.0, 2.0).requires_grad_()).sum().backward()
    events.append([numbers(p.grad) for p in net.parameters()])


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_hooks_see_what_those_of_pytorch_see(name):
    ours, theirs = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PROGRAMS[name](InTorch(), theirs)
    PROGRAMS[name](InCygrad(), ours)
    gc.collect()                                    # (modules and their hooks refer to each other)
    assert ours == theirs and ours


def test_a_module_with_backward_hooks_needs_no_collector():
    before = cg.memory.stats()["live_bytes"]
    net, seen = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), []
    handles = [part.register_full_backward_hook(lambda m, i, o: seen.append(i[0] is None)) for part in net]
    for _ in range(2):
        with cg.record(): y = net(cg.ones(4, 2)).sum()
        y.backward()
    assert seen == [False, False, True] * 2
    with cg.record(): y = net(cg.ones(4, 2)).sum()
    del net, handles, y                             # also without a pass
    assert cg.memory.stats()["live_bytes"] == before


def test_what_goes_through_a_hooked_call_shares_memory():
    module = nn.Identity()
    x = cg.ones(1000).requires_grad_()
    module.register_full_backward_hook(lambda *_: None)
    with cg.memory.track() as t:
        with cg.record(): y = module(x)
        assert y is not x and y.version == x.version
    assert t.peak_bytes < 4000 + 4000
    with cg.record(), pytest.raises(cg.InplaceError): y += 1


@pytest.mark.parametrize("value, words", [
    (lambda: (None,) * 3, "returned 3 values; it may return None, or a tuple of 1 tensors or None"),
    (lambda: 3.0, "returned 3.0; it may return None, or a tuple of 1 tensors or None"),
    (lambda: cg.ones(5), r"ModuleInputs.backward returned a gradient of shape \(5,\) for input 1 of shape"),
])
def test_what_a_backward_hook_may_not_return(value, words):
    module = nn.Tanh()
    module.register_full_backward_hook(lambda *_: value())
    x = cg.ones(2).requires_grad_()
    with cg.record(): y = module(x)
    with pytest.raises(ValueError, match=words): y.backward(cg.ones(2))


def test_a_single_gradient_may_be_returned_bare():
    module = nn.Tanh()
    module.register_full_backward_hook(lambda m, i, o: i[0] * 0 + 7)
    module.register_full_backward_pre_hook(lambda m, o: o[0] * 2)
    x = cg.ones(2).requires_grad_()
    with cg.record(): module(x).backward(cg.ones(2))
    assert x.grad.tolist() == [7, 7]


def test_backward_hooks_with_checkpoint_copies_and_captures():
    import copy

    module, seen = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    module.register_full_backward_hook(lambda m, i, o: seen.append(i[0].shape))
    module.checkpoint_()
    x = cg.ones(3, 2).requires_grad_()
    with cg.record(): module(x).sum().backward()
    assert seen == [(3, 2)]
    other = copy.deepcopy(module)                   # copies have no hooks
    with cg.record(): other(x).sum().backward()
    assert seen == [(3, 2)]
    with pytest.raises(RuntimeError, match="capture: a full backward hook of Sequential cannot be captured"):
        cg.graph.Net.capture(module, cg.ones(3, 2))


# ---- forward hooks ---------------------------------------------------------------------------------------------------

def calls_of_forward_hooks(m, fails):
    """What hooks with always_call see when a hook or forward fails."""
    events = []

    class Failing(m.nn.Module):
        def forward(self, x, k=1):
            if fails == "forward": raise KeyError("forward")
            return x * k

    def see(name, fail=False):
        def hook(module, args, *more):
            events.append((name, len(args), *(r if isinstance(r, dict) else numbers(r) for r in more)))
            if fail: raise KeyError(name)
        return hook

    module = Failing()
    module.register_forward_pre_hook(see("before", fails == "before"))
    module.register_forward_hook(see("plain"))
    module.register_forward_hook(see("always"), always_call=True)
    module.register_forward_hook(see("failing", fails == "after"), always_call=True)
    module.register_forward_hook(see("always with kwargs"), always_call=True, with_kwargs=True)
    module.register_forward_hook(see("always first"), always_call=True, prepend=True)
    module.register_forward_hook(see("failing too", fails is not None), always_call=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try: module(m.tensor(1.0, 2.0), k=3)
        except KeyError as e: events.append(e.args)
    return events, len(caught)


@pytest.mark.parametrize("fails", [None, "before", "forward", "after"])
def test_forward_hooks_that_are_always_called(fails):
    assert calls_of_forward_hooks(InCygrad(), fails) == calls_of_forward_hooks(InTorch(), fails)


def test_a_pre_hook_with_kwargs_returns_both():
    module = nn.Linear(2, 3)
    for wrong in (cg.ones(2), (1, 2, 3)):
        with module.register_forward_pre_hook(lambda m, a, k, wrong=wrong: wrong, with_kwargs=True):
            with pytest.raises(TypeError, match="a forward pre-hook with kwargs of Linear returned .*; it may return"):
                module(cg.ones(1, 2))
