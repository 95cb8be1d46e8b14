"""Comparison of cygrad's rows with the functions of counterparts.py on PyTorch's own sample inputs (OpInfo).

`python tests/support/opinfo.py` compares everything and prints the counts of tests/support/opinfo.txt. Write them there
when rows are added. With CYGRAD_OPINFO=all, PyTorch's reference inputs are compared too."""

import os
import sys
import warnings
from collections import Counter
from itertools import islice

import numpy as np

import cygrad as cg
from conventions import Unsupported, refuse
from counterparts import COUNTERPARTS

ALL = os.environ.get("CYGRAD_OPINFO") == "all"
SEED = 20
FEWEST = 20                                         # samples of one function
LARGEST = 10_000                                    # elements of a sample that is added to reach this number
MOST = 100                                          # of more samples, every second, third ... is compared


# ---- the comparison --------------------------------------------------------------------------------------------------

def one_thread():
    """PyTorch computes samples, which are small, on one thread: two wait for each other while other programs run."""
    import torch
    torch.set_num_threads(1)


def op_named(name):
    """The OpInfo with this name, or "name/variant"."""
    one_thread()
    from torch.testing._internal.common_methods_invocations import op_db
    found = [op for op in op_db if f"{op.name}/{op.variant_test_name}".rstrip("/") == name]
    assert len(found) == 1, f"PyTorch has {len(found)} OpInfos called {name}"
    return found[0]


def samples_of(op, references=True):
    """PyTorch's samples in float64, or in int64 if the function takes no floating-point inputs. If these are few (many
    elementwise functions have one), the reference inputs follow, which include special numbers."""
    import torch
    dtype = torch.float64 if torch.float64 in op.dtypes else torch.int64
    torch.manual_seed(SEED)
    wanted = op.supports_autograd and dtype.is_floating_point
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=wanted))
    n = len(samples)
    yield from samples[::1 if ALL else max(1, -(-n // MOST))]
    if not references: return
    references = op.reference_inputs("cpu", dtype, requires_grad=wanted)
    if ALL: yield from references
    else: yield from islice((s for s in references if numel(s) <= LARGEST), max(0, FEWEST - n))


def numel(sample):
    return sample.input.numel() if hasattr(sample.input, "numel") else 0


def walk(v, f):
    """The same structure with f applied to every tensor, in a fixed order."""
    import torch
    if isinstance(v, torch.Tensor): return f(v)
    if isinstance(v, dict): return {k: walk(x, f) for k, x in v.items()}
    if isinstance(v, (list, torch.Size)) or type(v) is tuple:
        return (list if isinstance(v, list) else tuple)(walk(x, f) for x in v)
    return v


def flat(ys):
    return list(ys) if isinstance(ys, (list, tuple)) else [ys]


def numbers(t):
    if t is None: return None
    return t.detach().numpy() if isinstance(t, cg.Tensor) else t.detach().numpy(force=True)    # (ZeroTensors too)


def same(ours, theirs, what):
    """Whether values agree. A missing gradient equals zeros."""
    if ours is None or theirs is None:
        there = theirs if ours is None else ours
        assert there is None or not there.any(), f"{what}: one side has none, the other {there}"
        return
    assert ours.shape == theirs.shape, f"{what}: shape {ours.shape}, PyTorch has {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{what}: dtype {ours.dtype}, PyTorch has {theirs.dtype}"
    if ours.dtype.kind != "f":
        assert np.array_equal(ours, theirs), f"{what}: {ours}, PyTorch has {theirs}"
        return
    finite = np.abs(theirs[np.isfinite(theirs)])
    rtol, tiny = (1e-5, 1e-6) if ours.dtype == "float32" else (1e-9, 1e-11)
    np.testing.assert_allclose(ours, theirs, rtol, tiny * max(1.0, finite.max(initial=0)), err_msg=what)


class Side:
    """The results of one library for a sample: value, gradients with a graph, second gradients, and gradients by
    kernels. `second` False: without second gradients."""

    def __init__(self, ys, leaves, variable, grad, recording, second=True):
        self.values = ys = flat(ys)
        rng = np.random.default_rng(SEED)
        ys = [y for y in ys if y.requires_grad]
        self.plain = self.first = self.second = [None] * len(leaves)
        if not ys:
            return
        heads = [variable(rng.uniform(-1, 1, tuple(y.shape)), y) for y in ys]
        with recording():
            self.first = grad(ys, leaves, heads, create_graph=True, allow_unused=True)
        directions = [rng.uniform(-1, 1, tuple(x.shape)) for x in leaves]
        pairs = [(g, variable(v, g)) for g, v in zip(self.first, directions, strict=True)
                 if g is not None and g.requires_grad]
        self.second = [None] * (len(leaves) + len(heads))
        if pairs and second:
            with recording():
                self.second = grad([g for g, _ in pairs], [*leaves, *heads], [v for _, v in pairs], retain_graph=True,
                                   allow_unused=True)
        self.plain = grad(ys, leaves, heads, allow_unused=True)     # last, because it frees the graph

    def arrays(self):
        for name in ("values", "first", "second", "plain"):
            for k, t in enumerate(getattr(self, name)):
                yield f"{name} {k}", numbers(t)


def compare(counterpart, op, sample):
    """Compare both libraries on one sample. Raises AssertionError if they differ, Unsupported if cygrad refuses it."""
    import torch
    given = sample.input, sample.args, sample.kwargs
    ours, theirs = [], []

    def to_cygrad(t):
        refuse(t.dtype in (torch.float16, torch.bfloat16) or t.is_complex(), "a dtype that cygrad has not")
        x = cg.asarray(t.detach().numpy())
        if t.requires_grad: ours.append(x.requires_grad_())
        return x

    def to_torch(t):
        x = t.detach()
        if t.requires_grad: theirs.append(x.requires_grad_())
        return x

    x, args, kwargs = walk(given, to_cygrad)
    with cg.record():
        y = counterpart.function(x, *args, **kwargs)
    found = Side(y, ours, lambda v, like: cg.tensor(v, dtype=like.dtype, requires_grad=True), cg.autograd.grad,
                 cg.record)
    x, args, kwargs = walk(given, to_torch)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):    # the others have no second derivative
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "reduction: 'mean' divides", UserWarning)     # kl_div
            y = op(x, *args, **kwargs)
    if counterpart.theirs: y = counterpart.theirs(y)
    wanted = Side(y, theirs, lambda v, like: torch.tensor(v, dtype=like.dtype, requires_grad=True), torch.autograd.grad,
                  torch.enable_grad)
    for (what, a), (_, b) in zip(found.arrays(), wanted.arrays(), strict=True):
        same(a, b, what)
    return len(ours) > 0


def count(counterpart):
    """Compare on all samples: (compared, differentiated, Counter of reasons of those skipped)."""
    op = op_named(counterpart.opinfo)
    compared = differentiated = 0
    skipped = Counter()
    for sample in samples_of(op, counterpart.references):
        try:
            differentiated += compare(counterpart, op, sample)
            compared += 1
        except Unsupported as e:
            skipped[str(e)] += 1
        except Exception as e:
            e.add_note(f"{counterpart.key}: {sample}")
            raise
    return compared, differentiated, skipped


def line(item, compared, differentiated, skipped):
    """A line of tests/support/opinfo.txt, modules.txt or layers.txt."""
    why = "; ".join(f"{n} {reason}" for reason, n in sorted(skipped.items()))
    text = f"{item.key}: {compared} compared, {differentiated} with gradients"
    return f"{text}, skipped {why}" if why else text


def report(items, count, name):
    """Print the line of each item, and failures, then the totals under `name`. Returns whether any failed."""
    total = Counter()
    failed = False
    for item in items:
        try:
            compared, differentiated, skipped = count(item)
        except Exception as e:
            print(f"{item.key}: {type(e).__name__}: {e}", *getattr(e, "__notes__", []), file=sys.stderr)
            failed = True
            continue
        print(line(item, compared, differentiated, skipped))
        total += Counter(compared=compared, differentiated=differentiated, skipped=skipped.total())
    print(f"{name}: {', '.join(f'{n} {what}' for what, n in total.items())}")
    return failed


if __name__ == "__main__":
    rows = len({c.row for c in COUNTERPARTS})
    sys.exit(report(COUNTERPARTS, count, f"{rows} rows, {len(COUNTERPARTS)} counterparts"))
