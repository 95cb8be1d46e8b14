"""Reference cycles that a user makes through the graph. Python's collector frees them, and a program without cycles
needs no collector."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad as cg


def variable(n=1000):
    return cg.ones(n).attach_grad()


def hook_on_its_own_tensor():
    x = variable()
    x.register_hook(lambda g: g / x)


def hook_on_a_result():
    x = variable()
    with cg.record():
        y = x * x
    y.register_hook(lambda g: g * y)


def hook_on_what_came_before():
    """The cycle contains a hundred nodes that were recorded before the first hook."""
    x = variable()
    with cg.record():
        y = x
        for _ in range(100): y = y * 1.0
        z = y * y
    x.register_hook(lambda g: z)


def hook_on_a_view_that_is_stale():
    x = variable()
    with cg.record():
        y = x * 1
        part = y[:10]
        y *= 2
    part.register_hook(lambda g: part)


def bound_method_of_an_owner():
    class Owner:
        def __init__(self):
            self.w = variable()
            self.w.register_post_accumulate_grad_hook(self.arrived)

        def arrived(self, w):
            pass

    Owner()


def hook_that_holds_its_node():
    x = variable()
    with cg.record():
        y = x * x
    node = y.grad_fn
    node.register_hook(lambda inputs, outputs: node)


def gradients_of_each_other():
    a, b = variable(), variable()
    a.grad, b.grad = b, a


def marked_with_each_other():
    a, b = variable(), variable()
    cg.mark_variables([a, b], [b, a])


def own_output_in_ctx():
    class Own(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, g):
            return g

    with cg.record():
        Own.apply(variable())


def what_pack_returned():
    seen = []
    with cg.autograd.saved_tensors_hooks(lambda t: (seen, t), lambda pair: pair[1]), cg.record():
        seen.append(cg.exp(variable()))


def kept_gradient_of_an_intermediate():
    x = variable()
    with cg.record():
        y = x * x
        y.retain_grad()
        z = y * x
    y.register_hook(lambda g: z)
    z.backward(retain_graph=True)


def higher_derivative_in_grad():
    x = variable()
    with cg.record():
        y = (x * x * x).sum()
        y.backward(create_graph=True)
        g = x.grad * 1
    x.register_hook(lambda _: g)


CYCLES = [
    hook_on_its_own_tensor, hook_on_a_result, hook_on_what_came_before, hook_on_a_view_that_is_stale,
    bound_method_of_an_owner, hook_that_holds_its_node, gradients_of_each_other, marked_with_each_other,
    own_output_in_ctx, what_pack_returned, kept_gradient_of_an_intermediate, higher_derivative_in_grad,
]


def alive():
    now = cg.memory.stats()
    return now["live_bytes"], now["live_buffers"], now["external_bytes"]


@pytest.mark.parametrize("make", CYCLES, ids=lambda f: f.__name__)
def test_a_cycle_is_freed_by_the_collector(make):
    gc.collect()
    before = alive()
    make()
    assert alive() != before                        # reference counts alone do not free it
    gc.collect()
    assert alive() == before


@pytest.mark.parametrize("make", CYCLES, ids=lambda f: f.__name__)
def test_nodes_that_exist_become_known_with_the_first_hook(make):
    """In a new process without hooks: an old graph is alive at the first cycle, and stays intact."""
    program = f"""
import gc
import cygrad as cg
from tests.core.graph.test_cycles import {make.__name__} as make, alive
x = cg.ones(3).attach_grad()
with cg.record():
    y = x
    for _ in range(1000): y = y * 2.0 ** 0.01
assert not gc.is_tracked(y.grad_fn)
before = alive()
make()
gc.collect()
assert alive() == before, (before, alive())
y.backward()
assert abs(x.grad.tolist()[0] / 1024 - 1) < 1e-4
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert run.returncode == 0, run.stderr


def test_a_cycle_that_is_in_use_stays():
    x = variable(3)
    with cg.record():
        y = x * x
    y.register_hook(lambda g: g * 2 if y is not None else g)
    gc.collect()
    y.backward()
    assert x.grad.tolist() == [4, 4, 4]             # (and the pass has released the hook)


def test_callbacks_of_weak_references_run_once():
    import weakref

    died = []
    x = variable(2)
    watch = weakref.ref(x, lambda _: died.append(1))
    x.register_hook(lambda g, x=x: g)
    del x
    gc.collect()
    assert died == [1] and watch() is None


def test_a_finalizer_may_use_what_is_in_the_cycle():
    """Python calls finalizers before it clears the cycle, so a backward through the cycle still works."""
    seen = []

    class Last:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def __del__(self):
            self.y.backward(retain_graph=True)
            seen.append(self.x.grad.tolist())

    x = variable(2)
    with cg.record():
        y = x * x
    y.register_hook(lambda g, kept=[Last(x, y)]: None)      # noqa: B008 (what the hook keeps)
    del x, y
    gc.collect()
    assert seen == [[2, 2]]


def test_no_collector_is_needed_without_cycles():
    before = alive()
    for _ in range(3):
        x = variable(10)
        with cg.record():
            y = (x * x).exp().sum()
            y.backward(create_graph=True)
            z = (x.grad * x.grad).sum()
        z.backward()
        handle = y.register_hook(lambda g: g)
        handle.remove()
        del x, y, z, handle
        assert alive() == before


def test_counting_the_memory_of_others_while_the_collector_frees_it():
    """The objects that the count makes can start the collector, which frees tensors in the list that is being counted.
    Before, the count continued in freed memory and did not end."""
    code = """
import gc, numpy as np, cygrad as cg
gc.disable()
kept = cg.asarray(np.ones(7))
for n in range(300):
    cycle = [cg.asarray(np.ones(n + 1))]
    cycle.append(cycle)
del cycle
gc.set_threshold(2)
gc.enable()
cg.memory.stats()
gc.disable()
gc.collect()
print(cg.memory.stats()["external_bytes"])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("56\n", "")
