"""A million scalar operations in one graph: chains of float32 tensors without dimensions.

There are three chains. *x + c* saves nothing for backward. *x * c* with a constant c saves c, which all operations
share. *x * w* with a variable w also saves its input, a buffer of its own. The phases, in seconds for the whole chain,
are forward (recorded), backward, and free (the last tensor is deleted). Every chain runs in a fresh process for each
library, and the libraries take turns. Bytes per operation: the growth of the resident memory during forward, divided by
the number of operations. quick: 100,000 operations, scaled to a million."""

import gc
import os
from time import perf_counter

THREADS = 1
LIBRARIES = ("cygrad", "PyTorch")
LENGTH = 1_000_000
CHAINS = {"x + c": 0.5, "x * c": 1.0, "x * w": 1.0}


def parts(libraries, quick):
    """Each chain for each library that has a graph."""
    return [(peer, chain) for chain in CHAINS for peer in libraries]


def resident_bytes():
    """The resident memory of this process."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def forward(x, second, add, n):
    """A chain of n additions or products."""
    if add:
        for _ in range(n):
            x = x + second
    else:
        for _ in range(n):
            x = x * second
    return x


def measure(peer, chain, quick):
    """Seconds of the phases and bytes per operation, by name, and the results of the chain."""
    n = LENGTH // 10 if quick else LENGTH
    add, variable = chain == "x + c", chain == "x * w"
    if peer == "cygrad":
        return measure_cygrad(chain, n, add, variable)
    return measure_torch(chain, n, add, variable)


def measure_cygrad(chain, n, add, variable):
    import cygrad as cg

    x, second = cg.tensor(1.0).attach_grad(), cg.tensor(CHAINS[chain])
    if variable:
        second.attach_grad()
    with cg.record():
        forward(x, second, add, 100).backward()
        gc.collect()
        live, bytes_before, start = cg.memory.stats()["live_bytes"], resident_bytes(), perf_counter()
        y = forward(x, second, add, n)
        took, grown = perf_counter() - start, resident_bytes() - bytes_before
    live = cg.memory.stats()["live_bytes"] - live
    details = {"node_bytes": y.grad_fn.__sizeof__(), "live_bytes": live / n}
    start = perf_counter()
    y.backward()
    back, value, start = perf_counter() - start, y.item(), perf_counter()
    del y
    free = perf_counter() - start
    values = [value * (1e6 / n if add else 1), x.grad.item()] + ([second.grad.item() * 1e6 / n] if variable else [])
    return figures(chain, n, took, back, free, grown, details), [values]


def measure_torch(chain, n, add, variable):
    import torch

    x, second = torch.tensor(1.0, requires_grad=True), torch.tensor(CHAINS[chain], requires_grad=variable)
    forward(x, second, add, 100).backward()
    x.grad = second.grad = None
    gc.collect()
    bytes_before, start = resident_bytes(), perf_counter()
    y = forward(x, second, add, n)
    took, grown, start = perf_counter() - start, resident_bytes() - bytes_before, perf_counter()
    y.backward()
    back, value, start = perf_counter() - start, y.item(), perf_counter()
    del y
    free = perf_counter() - start
    values = [value * (1e6 / n if add else 1), x.grad.item()] + ([second.grad.item() * 1e6 / n] if variable else [])
    return figures(chain, n, took, back, free, grown, {}), [values]


def figures(chain, n, took, back, free, grown, details):
    scale = LENGTH / n
    named = {"forward": took * scale, "backward": back * scale, "free": free * scale}
    made = {f"{chain}: {phase}": {"unit": "s", "figure": seconds} for phase, seconds in named.items()}
    made[f"{chain}: bytes per operation"] = {"unit": "B", "figure": grown / n, "details": details}
    return made
