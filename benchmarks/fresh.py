"""The process of imports.py: `python -m benchmarks.fresh LIBRARY` imports NumPy and then the library. It prints as JSON
the time (seconds) and the memory (bytes) that this took. The module imports nothing that a library might load
itself."""

import os
import sys
from time import perf_counter, process_time

SIZES = (2, 16, 16, 1)
BATCH = 100


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def import_library(name):
    if name == "cygrad":
        import cygrad as module
    elif name == "PyTorch":
        import torch as module
    elif name == "HIPS":
        import autograd as module
    elif name == "jax.jit":
        import jax as module
    else:
        import numpy as module
    return module


def matmul(name, module, np):
    """A first product."""
    a = np.ones((2, 2), np.float32)
    if name == "jax.jit":
        return module.block_until_ready(module.numpy.matmul(a, a))
    a = module.asarray(a) if name in ("cygrad", "PyTorch") else a
    return a @ a


def step(name, module, np):
    """Forward, mean squared error, backward, and plain SGD, from made-up numbers. Returns the loss."""
    arrays = []
    for a, b in zip(SIZES, SIZES[1:], strict=False):
        arrays += [np.linspace(-1, 1, a * b, dtype=np.float32).reshape(b, a), np.zeros(b, np.float32)]
    x = np.linspace(-1, 1, 2 * BATCH, dtype=np.float32).reshape(BATCH, 2)
    lr = np.float32(0.01)

    def loss_of(parameters, x, dot, relu):
        for i in range(0, len(parameters), 2):
            x = dot(x, parameters[i].T) + parameters[i + 1]
            if i + 2 < len(parameters):
                x = relu(x)
        return (x * x).mean()

    if name == "cygrad":
        parameters = [module.tensor(p).attach_grad() for p in arrays]
        solver = module.optim.Sgd(0.01)
        solver.set_parameters(parameters)
        with module.record():
            loss = loss_of(parameters, module.tensor(x), module.matmul, module.relu)
        loss.backward()
        solver.update()
        return loss.item()
    if name == "PyTorch":
        parameters = [module.from_numpy(p).requires_grad_() for p in arrays]
        loss = loss_of(parameters, module.from_numpy(x), module.matmul, module.relu)
        loss.backward()
        module.optim.SGD(parameters, lr=0.01).step()
        return loss.item()
    if name == "HIPS":
        from autograd import numpy as anp

        loss, gradients = module.value_and_grad(loss_of)(arrays, x, anp.dot, lambda x: anp.maximum(x, 0))
        arrays = [p - lr * g for p, g in zip(arrays, gradients, strict=True)]
        return float(loss)
    if name == "jax.jit":
        jnp = module.numpy

        def train(parameters, x):
            loss, gradients = module.value_and_grad(loss_of)(parameters, x, jnp.dot, lambda x: jnp.maximum(x, 0))
            return loss, [p - lr * g for p, g in zip(parameters, gradients, strict=True)]

        return float(module.jit(train)(arrays, x)[0])
    kept, h = [], x
    for i in range(0, len(arrays), 2):
        kept.append(h)
        h = h @ arrays[i].T + arrays[i + 1]
        h = np.maximum(h, 0) if i + 2 < len(arrays) else h
    loss, g = (h * h).mean(), h * np.float32(2 / h.size)
    for i in range(len(arrays) - 2, -1, -2):
        dw, db, dx = g.T @ kept[i // 2], g.sum(0), g @ arrays[i]
        arrays[i] -= lr * dw
        arrays[i + 1] -= lr * db
        g = dx * (kept[i // 2] > 0)
    return float(loss)


def main(name):
    used, start = process_time(), perf_counter()
    import numpy as np

    numpy_took, numpy_holds, then = perf_counter() - start, resident(), perf_counter()
    module = import_library(name)
    took, holds, then = perf_counter() - then, resident() - numpy_holds, perf_counter()
    product = matmul(name, module, np)
    first = perf_counter() - then
    share = (process_time() - used) / (perf_counter() - start)
    loss = step(name, module, np)
    after = resident() - numpy_holds
    import json

    made = {"share": share, "loss": loss, "product": float(np.asarray(product)[0, 0]), "first matmul": first,
            "resident after a first small step": after}
    if name == "NumPy":
        made["import numpy"] = numpy_took
    else:
        made |= {"import": took, "resident after import": holds}
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
