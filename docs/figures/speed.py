"""Chapters 20, 21, 23 and 24: the arrays of four ways to log cosh, the bits of exp, patches of an image, and blocks of
attention."""

import math
import re
from pathlib import Path

import numpy as np
from drawing import page

import cygrad as cg

HEADER = Path(__file__).parents[2] / "include" / "cygrad" / "single.h"

# ---- chapter 20: the arrays of an operation --------------------------------------------------------------------------

class InSixPasses(cg.autograd.Function):
    """y = log cosh x        dx = g tanh x, in operations of cygrad"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a = abs(x)
        return a + cg.log1p(cg.exp(-2 * a)) - math.log(2)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * cg.tanh(x)


class InOneLoop(cg.autograd.Function):
    """y = log cosh x        dx = g tanh x, in memory that the Function allocates"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = cg.empty(x.shape, x.dtype)
        y.numpy()[...] = np.logaddexp(x.numpy(), -x.numpy()) - math.log(2)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = cg.empty(x.shape, x.dtype)
        dx.numpy()[...] = g.numpy() * np.tanh(x.numpy())
        return dx


WAYS = {"composed of operators": lambda x: cg.log(cg.cosh(x)), "a Function of operations": InSixPasses.apply,
        "a Function with a loop": InOneLoop.apply, "an operator (tanh)": cg.tanh}


def course(f, n=1000):
    """The events of a step on n numbers: the kind, what the array is now, and the arrays that are live beside x. Then
    how many of these events are of forward, and how many arrays the graph saves."""
    x, events = cg.ones(n).attach_grad(), []
    before = cg.memory.stats()["live_bytes"]

    def note(event):
        kind, _, _, category = event
        events.append([kind, category, round((cg.memory.stats()["live_bytes"] - before) / x.nbytes, 9)])

    with cg.memory.events(note):
        with cg.record() as tape:
            h = x * 1
            y = f(h)
            del h
        forward, saved = len(events), round(tape.saved_bytes / x.nbytes, 9)
        y.backward()
    return {"events": events, "forward": forward, "saved": saved}


def ways():
    """The page with the live arrays of four ways to compute log cosh, event by event."""
    return page("ways", {name: course(f) for name, f in WAYS.items()})


# ---- chapter 21: the bits of exp -------------------------------------------------------------------------------------

def exponential():
    """The page with the bits of exp: the constants of cg_exp_of_number_f and of cg_exp_core_f."""
    source = HEADER.read_text()
    number = r"(-?0x[\d.a-f]+p[+-]\d+|-?[\d.]+(?:e[+-]?\d+)?)f"

    def body(name): return re.search(rf"float {name}\(float \w+\) {{\n(.*?)^}}", source, re.M | re.S)[1]

    def value(text): return float.fromhex(text) if "0x" in text else float(np.float32(text))

    def constant(name): return value(re.search(rf"#define {name} {number}", source)[1])

    low, high, inverse = (value(x) for x in re.findall(number, body("cg_exp_of_number_f"))[:3])
    return page("exponential", {"terms": [value(x) for x in re.findall(number, body("cg_exp_core_f"))], "low": low,
                                "high": high, "inverse": inverse, "rounder": constant("CG_ROUNDER_F"),
                                "log2": [constant("CG_LN2_HIGH_F"), constant("CG_LN2_LOW_F")]})


# ---- chapter 23: patches ---------------------------------------------------------------------------------------------

def patches():
    """The page with the matrix of patches of an image, by the size of the kernel, the stride and the padding."""
    return page("patches", 5)


# ---- chapter 24: blocks ----------------------------------------------------------------------------------------------

QUERIES = 8


def small():
    """q, k and v of an example whose scores are exact."""
    rng = np.random.default_rng(0)
    return [(rng.integers(-3, 4, (QUERIES, 4)) / 2).tolist() for _ in range(2)] + [
        rng.integers(0, 10, (QUERIES, 1)).astype(float).tolist()]


def blocks():
    """The page where attention of eight queries is computed block by block."""
    return page("blocks", dict(zip("qkv", small(), strict=True)))


FIGURES = {"ways.html": ways, "exponential.html": exponential, "patches.html": patches, "blocks.html": blocks}
