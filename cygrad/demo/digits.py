"""Train an MLP 64-128-64-10 with Adam on scikit-learn's digits; then say how well, how fast and with which bytes."""

import importlib
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

import cygrad as cg
from cygrad.demo.training import layer, network, train

SIZES = (64, 128, 64, 10)
LEARNING_RATE = 1e-3
SPLIT_SEED = 0          # which images are the test set does not depend on --seed

CATEGORIES = ("parameters", "gradients", "saved", "optimizer", "workspace", "other")
SUFFIXES = (".png", ".svg", ".pdf")


class DemoError(Exception):
    """What keeps the demo from running, in one line."""


def require(*modules):
    """Raise DemoError, naming what to install, if one of the optional packages is missing."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:
            name = {"sklearn": "scikit-learn"}.get(module, module)
            raise DemoError(f"the demo needs {name}, which is not installed: pip install cygrad[demo]") from None


def picture_path(output):
    """Where the picture goes: `output`, or digits.png in it if it is a directory or names no file type. Raises
    DemoError where it could not be written; nothing is made yet."""
    path = Path(output)
    try:
        if path.is_dir() or not path.suffix: path = path / "digits.png"
        if path.suffix.lower() not in SUFFIXES:
            raise DemoError(f"--output {output}: the picture is one of {', '.join(SUFFIXES)}, not {path.suffix}")
        there = path
        while not there.exists(): there = there.parent
        if there.is_dir() == (there == path) or not os.access(there, os.W_OK):
            raise DemoError(f"--output {output}: {there} cannot be written {'to' if there == path else 'into'}")
    except OSError as e:
        raise DemoError(f"--output {output}: {e.strerror}") from None
    return path


def load():
    """Images (1797, 64) between 0 and 1, float32; labels (1797,); the rows to train on, 80 %, and those to test on."""
    digits = importlib.import_module("sklearn.datasets").load_digits()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits.data))
    cut = len(order) * 4 // 5
    return (digits.data / 16).astype("float32"), digits.target, order[:cut], order[cut:]


class Step:
    """What memory did in one training step: after every event (a buffer taken, given back, or counted under another
    category from now on) the live bytes of each category, and whether the step was in its forward pass.

    These are the pool's own counters, read at every event, so each moment is exact, the peak too. Batches are NumPy
    arrays that tensors look at (cg.asarray). cygrad neither takes nor gives back those bytes, so they are in no
    category; they are real memory all the same, and are named apart as `external`."""

    def __init__(self, run, *args):
        self.moments = []
        self.forward = []
        self.external = 0
        with cg.memory.track() as track, cg.memory.events(self.note):
            self.note(None)
            self.result = run(*args)
            self.note(None)
        self.peak_bytes = track.peak_bytes

    def note(self, _):
        stats = cg.memory.stats()
        self.moments.append(stats["by_category"])
        self.forward.append(cg.is_recording())
        self.external = max(self.external, stats["external_bytes"])

    @property
    def live(self):
        """Live bytes at every moment."""
        return [sum(m.values()) for m in self.moments]

    @property
    def peak(self):
        """The first moment at which as much was live as ever in the step."""
        return self.live.index(max(self.live))


def table(step):
    """The memory table, as lines."""
    at_peak = step.moments[step.peak]
    rows = [*((name, at_peak[name]) for name in CATEGORIES), ("peak", step.peak_bytes)]
    lines = [f"{'memory at the peak of a step':<30}{'bytes':>10}{'share':>10}"]
    lines += [f"  {name:<28}{n:>10,}{n / step.peak_bytes:>10.1%}" for name, n in rows]
    lines += [f"  not counted: the batch, {step.external:,} bytes in NumPy's own memory"]
    return lines


def main(epochs, batch_size, threads, seed, output, say=print):
    """Run the demo; returns the test accuracy. Raises DemoError for what it cannot work with."""
    path = picture_path(output)             # now, not when the training is over
    require("tqdm", "sklearn", "matplotlib")
    from tqdm import tqdm

    from cygrad.demo.picture import draw

    images, labels, training, test = load()
    if batch_size > len(training):
        raise DemoError(f"--batch-size {batch_size}: there are {len(training)} images to train on")
    if threads is not None: cg.set_num_threads(threads)
    say(f"digits: {len(training)} images to train on, {len(test)} to test on; MLP {'-'.join(map(str, SIZES))}, Adam, "
        f"batch {batch_size}, {epochs} epochs, seed {seed}, threads {cg.get_num_threads()}")

    rng = np.random.default_rng(seed)
    layers = [layer(rng, n_in, n_out) for n_in, n_out in pairwise(SIZES)]
    solver = cg.optim.Adam(LEARNING_RATE)
    solver.set_parameters(variable for pair in layers for variable in pair)
    losses = []
    seconds = 0.0
    n_batches = -(-len(training) // batch_size)
    with tqdm(total=epochs * n_batches, unit="step") as bar:
        for epoch in range(epochs):
            start = time.perf_counter()
            order = rng.permutation(training)
            batches = [order[i:i + batch_size] for i in range(0, len(order), batch_size)]
            if epoch == epochs - 1:         # its first step is the one that is looked at
                step = Step(train, layers, solver, images, labels, [batches.pop(0)])
                losses += step.result
            losses += train(layers, solver, images, labels, batches)
            seconds += time.perf_counter() - start
            bar.update(n_batches)
            bar.set_postfix(loss=f"{np.mean(losses[-n_batches:]):.4f}")

    scores = network(layers, cg.asarray(images[test])).numpy()
    right = int((scores.argmax(1) == labels[test]).sum())
    accuracy = right / len(test)
    say(f"test accuracy    {accuracy:.2%} ({right} of {len(test)})")
    say(f"steps per second {len(losses) / seconds:,.0f} ({len(losses)} steps in {seconds:.2f} s)")
    for line in table(step): say(line)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(path, losses, n_batches, step, accuracy)
    except OSError as e:
        raise DemoError(f"--output {output}: {e.strerror}") from None
    say(f"picture: {path}")
    return accuracy
