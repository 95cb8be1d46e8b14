"""Every allocation of Python memory by a piece of code fails once: `python tests/support/nomemory.py NAME ...`; without
a name it prints the names. Each failure raises MemoryError or nothing, and leaves no flag on and no byte live."""

import copy
import gc
import os
import pickle
import sys
import tempfile
import types

import _testcapi
import numpy as np

import cygrad as cg
from cygrad.autograd import (
    Function, detect_anomaly, disable_saved_tensors_hooks, register_multi_grad_hook, saved_tensors_hooks,
)
from cygrad.memory.log import open_logs
from cygrad.testing import fail_allocation


# Files in memory: thousands that are written and removed take ten times as long on a disk.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def leaf():
    return cg.tensor([1.0, 2.0, 3.0]).attach_grad("add")


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g


def scope_of(make):
    def run():
        with make():
            pass
    return run


def raising(make):
    def run():
        try:
            with make():
                raise KeyError
        except KeyError:
            pass
    return run


MAKERS = {
    "record": cg.record, "pause": cg.pause, "train_mode": cg.train_mode, "no_grad": cg.no_grad,
    "GradientCollector": cg.GradientCollector, "detect_anomaly": detect_anomaly,
    "saved_tensors_hooks": lambda: saved_tensors_hooks(id, id), "scope": cg.memory.scope, "track": cg.memory.track,
    "limit": lambda: cg.memory.limit("1GiB"), "profile": cg.memory.profile, "events": cg.memory.events,
    "disable_saved_tensors_hooks": lambda: disable_saved_tensors_hooks("no"),
    "fail_allocation": lambda: fail_allocation(1000), "budget": lambda: cg.memory.budget("1GiB"),
}


@cg.record
def decorated(x):
    return x * x


@cg.record
def generated(x):
    for _ in range(3): yield x * x


def eager():
    x = cg.ones((3, 4))
    return cg.exp(x.T @ x).sum(0).tolist()


def step():
    x = leaf()
    with cg.record():
        y = (cg.exp(x) * x[1:].sum() + cg.tanh(x)).sum()
    y.backward()
    return x.grad.tolist()


def higher():
    x = leaf()
    with cg.record():
        g = cg.autograd.grad((x * x * x).sum(), x, create_graph=True)
        return cg.autograd.grad(g.sum(), x).tolist()


def hooked():
    x = leaf()
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda x: None)
    with cg.record():
        y = x * x
        y.register_hook(lambda g: g + 1)
        y.grad_fn.register_hook(lambda before, after: None)
        y.retain_grad()
    register_multi_grad_hook([x, y], lambda gs: None)
    register_multi_grad_hook([x, y], lambda g: None, "any")
    y.backward()


def function():
    x = leaf()
    with cg.record(): y = Square.apply(x).sum()
    y.backward()


def solver():
    x = leaf()
    s = cg.optim.Adam(0.1)
    s.set_parameters([x])
    with cg.record(): y = (x * x).sum()
    y.backward()
    s.update()
    s.zero_grad()
    return pickle.loads(pickle.dumps((x, s)))


def packed():
    x = leaf()
    with saved_tensors_hooks(lambda t: t.numpy().copy(), cg.asarray), cg.record():
        y = cg.exp(x * x).sum()
    y.backward(retain_graph=True)


def anomaly():
    x = leaf()
    with detect_anomaly(), cg.record():
        y = cg.exp(x * x).sum()
        y.backward()


def collected():
    x = leaf()
    with cg.GradientCollector() as gc:
        gc.backward((x * x).sum())
        gc.zero_gradients()


def scoped():
    with cg.memory.scope() as s:
        x = leaf()
        return s.keep(x * 2)


def profiled():
    with cg.memory.profile() as p:
        step()
    return p.table(), p.at_peak()


def logged():
    with cg.memory.events() as log, cg.memory.track() as t:
        step()
    return len(log), t.peak_bytes


def inplace():
    x = leaf()
    with cg.record():
        y = x * 2
        y[1:] *= y[:-1]
        y += 1
        z = (y * y.T).sum()
    z.backward()


def shared():
    a = np.ones(6, "float32")
    x, y = cg.asarray(a), cg.from_dlpack(a[::2])
    cg.memory.stats()
    return np.asarray(x), np.from_dlpack(y), memoryview(x)


def pickled():
    x = leaf()
    return pickle.loads(pickle.dumps([x, x[1:], x * 2])), copy.deepcopy(x), copy.copy(x)


N = 500
SPARE = [N] * 10_000        # (Cython loses a reference to what a list comprehension has no memory to append)


def chain(call):
    x = cg.ones(N).attach_grad()
    with cg.record():
        y = x
        for _ in range(4): y = call(y)
        z = y.sum()
        del y
    z.backward()


def part(x): return cg.sin(cg.exp(cg.dropout(x, 0.1) * 0.1))


def bounded():
    """Each step evicts; the second one follows a plan."""
    with cg.memory.budget(9_000 + cg.memory.stats()["live_bytes"]) as b:
        for _ in range(3): chain(part)
    return b.recomputed, b.floor_bytes, b.planned


def checkpointed(): chain(lambda x: cg.checkpoint(part, x, keep="exp"))


def spilled():
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, cg.memory.offload(folder, smallest=0): chain(part)


def fused():
    x, w = leaf(), cg.ones((3, 2)).attach_grad()
    s = cg.optim.Momentum(0.1)
    s.set_parameters([x, w])
    with s.fuse_into_backward():
        with cg.record(): y = (cg.tanh((x * x) @ w) @ w.T).sum()
        s.weight_decay(0.01)
        y.backward()


def threads_of_generators():
    x = leaf()
    return [y.tolist() for y in generated(x)], decorated(x)


def saved(suffix):
    """Save and load. The old file or the new one is there, and no other."""
    def run():
        with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
            path = os.path.join(directory, "x" + suffix)
            return failing(path)

    def failing(path):
        cg.save(path, {"x": np.ones((2, 3)).T, "b": [True]}, {"k": "v"})
        cg.load(path, dtype=cg.float32, mmap=suffix == ".safetensors")
        return cg.io.metadata(path)
    return run


WORK = {
    **{f"with {name}": scope_of(make) for name, make in MAKERS.items()},
    **{f"raising in {name}": raising(make) for name, make in MAKERS.items()},
    **{f.__name__: f for f in (eager, step, higher, hooked, function, solver, packed, anomaly, collected, scoped,
                               profiled, logged, inplace, shared, pickled, bounded, checkpointed, spilled, fused,
                               threads_of_generators)},
    "saved as .safetensors": saved(".safetensors"), "saved as .npz": saved(".npz"),
}


def state():
    s = cg.memory.stats()
    return (cg.is_recording(), cg.is_training(), len(open_logs()), s["live_bytes"], s["live_buffers"],
            s["external_bytes"])


def references_to_inner_functions():
    """A thousand references to the code of each function that a function makes. Python 3.12 and 3.13 lose one when they
    have no memory for such a function, and crash when the last is lost."""
    codes = [f.__code__ for f in gc.get_objects() if isinstance(f, types.FunctionType)]
    inner = []
    while codes:
        codes = [c for code in codes for c in code.co_consts if isinstance(c, types.CodeType)]
        inner += codes
    return inner * 1000


def main(name):
    work = WORK[name]
    for _ in range(3): work()
    gc.collect()
    spare = references_to_inner_functions()
    with cg.record():                               # use up the free lists of tensors and nodes
        x = leaf()
        held = [x * 1.0 for _ in range(1100)]
    del x
    gc.collect()
    before = state()
    failures, quiet, n = 0, 0, 0
    sys.unraisablehook = lambda u: None             # errors while objects die are printed and ignored
    while quiet < 40:
        _testcapi.set_nomemory(n, n + 1)
        try:
            work()
            quiet += 1
        except MemoryError:
            failures += 1
            quiet = 0
        except (pickle.PicklingError, SystemError):  # pickle and NumPy's any() raise these instead
            failures += 1
            quiet = 0
        except RuntimeError as e:                   # the same from io
            if "can't allocate" not in str(e): raise
            failures += 1
            quiet = 0
        finally:
            _testcapi.remove_mem_hooks()
        now = state()
        if now != before:
            gc.collect()                            # (a traceback may be in a cycle with its frames)
            now = state()
        assert now == before, f"{name}, allocation {n}: {before} became {now}"
        n += 1
    del held, spare
    with cg.memory.limit("1GiB"), cg.memory.scope(): cg.ones(3) + 1
    assert failures > 0, name
    print(f"{name}: {failures} of {n}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1: print(*WORK, sep="\n")
    for name in sys.argv[1:]: main(name)
