"""What the programs share, which tests start on several ranks."""

import gc
import sys

import numpy as np

import cygrad as cg

COMM = cg.comm.Communicator()
RANK, SIZE = COMM.rank, COMM.size


def raised(f, kind):
    """The message of what f() raises."""
    try: f()
    except kind as e: return str(e)
    raise AssertionError(f"wanted {kind.__name__}")


def random(shape, seed, dtype="float32"):
    """Numbers whose sums depend on the order of addition."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape)).astype(dtype)


def summed(parts, divisor=1):
    """The sum in the order of the ranks."""
    total = parts[0].copy()
    for x in parts[1:]: total = total + x
    return total / total.dtype.type(divisor) if divisor != 1 else total


def same(x, array):
    """Whether a tensor has the bits of an array."""
    return x.detach().numpy().tobytes() == np.ascontiguousarray(array).tobytes()


def same_on_all_ranks(*tensors):
    """Whether all ranks have the same bits."""
    for x in tensors:
        outs = [cg.empty(x.shape, dtype=x.dtype) for _ in range(SIZE)]
        COMM.all_gather(x.detach(), outs)
        if any(not same(out, x.detach().numpy()) for out in outs): return False
    return True


def main(names):
    """Run the functions check_*. Each must leave no live bytes. Rank 0 prints their names."""
    gc.disable()
    for name, f in list(names.items()):
        if not name.startswith("check_"): continue
        f()
        live = cg.memory.stats()["live_bytes"]
        assert live == 0, f"{name} left {live} bytes on rank {RANK}"
        if RANK == 0: print(name, flush=True)
    COMM.barrier()
    sys.stdout.flush()
