"""Backward passes inside Functions and hooks inside passes: if nested too deep they raise, and change nothing."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad as cg

KEYS = "live_bytes", "live_buffers"


class Nested(cg.autograd.Function):
    """y = x; its backward runs a backward through another one, `left` levels deep."""
    left = 0

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        if Nested.left:
            Nested.left -= 1
            descend()
        return g


def descend():
    x = cg.ones(2).attach_grad()
    with cg.record():
        y = Nested.apply(x).sum()
    y.backward()


def hooked():
    """The same by hooks."""
    x = cg.ones(2).attach_grad()

    def hook(g):
        if Nested.left:
            Nested.left -= 1
            hooked()

    with cg.record():
        y = x * x
        z = y.sum()
    y.register_hook(hook)
    z.backward()


@pytest.mark.parametrize("start", [descend, hooked])
@pytest.mark.parametrize("depth", [3, 100, 800, 5000])
def test_as_deep_as_python_goes(start, depth):
    gc.collect()
    with cg.record():
        before = [cg.memory.stats()[key] for key in KEYS]
        Nested.left = depth
        if depth <= 100: start()
        else:
            with pytest.raises(RecursionError):
                start()
        assert cg.is_recording()
    Nested.left = 0
    gc.collect()
    assert [cg.memory.stats()[key] for key in KEYS] == before
    start()                                         # and everything is as before


@pytest.mark.parametrize("stack", [1 << 20, 64 << 20])
def test_the_stack_ends_before_python_does(stack):
    """Without Python's limit, a RecursionError names the stack, for threads with any stack size."""
    program = f"""
import gc, sys, threading
import cygrad as cg
from tests.properties.test_depth import Nested, descend
sys.setrecursionlimit(10**7)
threading.stack_size({stack})
said = []

def body():
    before = cg.memory.stats()["live_bytes"]
    Nested.left = 10**6
    try:
        descend()
    except RecursionError as e:
        said.append(str(e))
    Nested.left = 0
    gc.collect()
    assert cg.memory.stats()["live_bytes"] == before
    descend()

thread = threading.Thread(target=body)
thread.start()
thread.join()
# From Python 3.12 on its own limit of nested C calls may come first: setrecursionlimit() does not change it.
own = sys.version_info >= (3, 12) and said[0].startswith("maximum recursion depth exceeded")
assert own or "stack" in said[0], said
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert run.returncode == 0, run.stderr[-2000:]
