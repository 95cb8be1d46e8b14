"""python -m benchmarks.disk: a training step whose activations wait on a disk.

A perceptron of 20 layers of 768 with tanh, batch 8,192, SGD within backward: 25 MB for each activation. `peak` is the
peak of live bytes of a step, parameters included, as a share of the step in memory. `budget` is memory.budget() of that
share, by recomputation alone and with a folder; `offload` is memory.offload(), which sends all that it can. PyTorch
is the same step, and with saved_tensors_hooks that write each saved tensor to a file of its own, as its tutorial does.
The parameters after each way are equal bit for bit within a library. Times are medians of steps in turns, as shares of
the library's own step in memory. `disk` is how fast the folder's disk takes and gives 256 MB, past the cache of the
system for writes. The table is written to disk.md."""

import argparse
import gc
import os
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import machine, work
from benchmarks.peaks import torch_most

LAYERS, WIDTH, BATCH = 20, 768, 8192
RATE = 1e-3
SHARES = (0.53, 0.25)
ROUNDS = 3


def weights():
    rng = np.random.default_rng(0)
    return [rng.normal(0, WIDTH ** -0.5, (WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)]


def batch():
    return np.random.default_rng(1).normal(0, 1, (BATCH, WIDTH)).astype(np.float32)


def cygrad_step():
    """(a function that takes a step, the parameters)"""
    import cygrad as cg

    parameters = [cg.tensor(w).attach_grad() for w in weights()]
    solver = cg.optim.Sgd(RATE)
    solver.set_parameters(parameters)
    solver.fuse_into_backward()
    x = cg.tensor(batch())

    def step():
        with cg.record():
            h = x
            for w in parameters: h = cg.tanh(cg.linear(h, w))
            loss = (h * h).mean()
        del h
        loss.backward()
        solver.update()

    return step, parameters


def torch_step():
    import torch

    parameters = [torch.nn.Parameter(torch.from_numpy(w)) for w in weights()]
    solvers = {p: torch.optim.SGD([p], lr=RATE) for p in parameters}

    def hook(p):
        solvers[p].step()
        p.grad = None

    for p in parameters: p.register_post_accumulate_grad_hook(hook)
    x = torch.from_numpy(batch())

    def step():
        h = x
        for w in parameters: h = torch.tanh(torch.nn.functional.linear(h, w))
        loss = (h * h).mean()
        del h
        loss.backward()

    return step, parameters


def in_files(step, folder):
    """PyTorch's step with each saved tensor in a file."""
    import torch

    def run():
        count, paths = 0, []

        def pack(t):
            nonlocal count
            if t.numel() < 1 << 14 or isinstance(t, torch.nn.Parameter): return t
            path = os.path.join(folder, f"{count}.pt")
            count += 1
            torch.save(t, path)
            paths.append(path)
            return path

        def unpack(t):
            return torch.load(t) if isinstance(t, str) else t

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack): step()
        for path in paths: os.unlink(path)

    return run


def peak_of(step):
    import cygrad as cg

    gc.collect()
    cg.memory.reset_peak()
    step()
    return cg.memory.stats()["peak_bytes"]


def cygrad_ways(folder):
    """{name: (peak, a function that takes a step, one that says what it has done)}; the step in memory first."""
    import cygrad as cg

    step, parameters = cygrad_step()
    start = [p.numpy().copy() for p in parameters]
    step()
    wanted = [p.numpy().copy() for p in parameters]
    whole = peak_of(step)
    found = {"cygrad": (whole, step, lambda: "")}

    def offloaded():
        with cg.memory.offload(folder): step()

    ways = {}
    for share in SHARES:
        for file in (None, folder):
            b, last = cg.memory.budget(int(share * whole), offload=file), []
            name = f"cygrad, budget of {share:.0%}" + (", folder" if file else "")

            def bounded(b=b, last=last):
                before = b.read_bytes
                with b: step()
                last[:] = b.recomputed.share, (b.read_bytes - before) / 1e6

            ways[name] = bounded, lambda last=last: f"{last[0]:.0%} again, {last[1]:.0f} MB read"
    ways["cygrad, offload"] = offloaded, lambda: "all that can be"
    for name, (run, done) in ways.items():
        for p, a in zip(parameters, start, strict=True): p[...] = a
        run()
        if not all((p.numpy() == w).all() for p, w in zip(parameters, wanted, strict=True)):
            raise AssertionError(f"{name}: other parameters than in memory")
        found[name] = peak_of(run), run, done
    return found


def torch_ways(folder):
    step, _ = torch_step()
    step()
    files = in_files(step, folder)
    return {name: (torch_most(lambda run=run: run)[0], run, lambda: "")
            for name, run in (("PyTorch", step), ("PyTorch, hooks that write files", files))}


def disk_speed(folder, nbytes=256 << 20):
    """Bytes a second of a write until it is on the disk, and of a read, which the system may have cached."""
    data = np.random.default_rng(2).bytes(nbytes)
    with tempfile.NamedTemporaryFile(dir=folder) as f:
        start = perf_counter()
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
        written = perf_counter()
        f.seek(0)
        f.read()
        return nbytes / (written - start), nbytes / (perf_counter() - written)


def in_turns(ways):
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (_, step, _) in ways.items():
            start = perf_counter()
            step()
            times[name].append(perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def table(folder):
    ways = {**cygrad_ways(folder), **torch_ways(folder)}
    times = in_turns(ways)
    lines = ["| step | peak, MB | of the step in memory | time | what it did |", "|---|---:|---:|---:|---|"]
    for name, (peak, _, done) in ways.items():
        whole = name.split(",")[0]
        lines.append(f"| {name} | {peak / 1e6:.0f} | {peak / ways[whole][0]:.2f} | {times[name] / times[whole]:.2f} | "
                     f"{done()} |")
    ratio = times["PyTorch"] / times["cygrad"]
    lines += ["", f"PyTorch's step in memory takes {ratio:.2f} of the time of cygrad's.", ""]
    return "\n".join(lines)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disk", description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is written "
                        "(default %(default)s; make bench writes benchmarks/results)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to use (default "
                        "%(default)s)")
    options = parser.parse_args(argv)
    work.set_threads(["cygrad", "PyTorch"], 1)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        there, back = disk_speed(folder)
        text = (f"{machine.cpu_name()}, one thread; disk: {there / 1e9:.1f} GB/s to it, {back / 1e9:.1f} GB/s from the "
                f"system's cache.\n\n{table(folder)}")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "disk.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
