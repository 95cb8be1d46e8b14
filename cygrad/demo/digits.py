"""Trains an MLP or a CNN with Adam on scikit-learn's digits, and prints the accuracy, the speed and the memory."""

import importlib
import os
import time
from pathlib import Path

import numpy as np

import cygrad as cg
from cygrad.demo.training import cnn, mlp, train

MODELS = {"mlp": (mlp, "MLP 64-128-64-10"), "cnn": (cnn, "CNN of three convolutions")}
LEARNING_RATE = 1e-3
SPLIT_SEED = 0          # the split into training and test images does not depend on --seed

CATEGORIES = ("parameters", "gradients", "saved", "optimizer", "workspace", "other")
SUFFIXES = (".png", ".svg", ".pdf")


class DemoError(Exception):
    """The reason why the demo cannot run, in one line."""


def require(*modules):
    """Raise DemoError, naming what to install, if one of the optional packages is missing."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:
            name = {"sklearn": "scikit-learn"}.get(module, module)
            raise DemoError(f"the demo needs {name}, which is not installed: pip install cygrad[demo]") from None


def picture_path(output):
    """The path of the picture: `output`, or digits.png in it if it is a directory or has no suffix. Raises DemoError if
    the file cannot be written. It creates nothing."""
    path = Path(output)
    try:
        if path.is_dir() or not path.suffix: path = path / "digits.png"
        if path.suffix.lower() not in SUFFIXES:
            raise DemoError(f"--output {output}: the picture must be one of {', '.join(SUFFIXES)}, not {path.suffix}")
        there = path
        while not there.exists(): there = there.parent
        if there.is_dir() == (there == path) or not os.access(there, os.W_OK):
            raise DemoError(f"--output {output}: {there} cannot be written {'to' if there == path else 'into'}")
    except OSError as e:
        raise DemoError(f"--output {output}: {e.strerror}") from None
    return path


def load():
    """Images (1797, 1, 8, 8) between 0 and 1, float32; labels (1797,); the rows to train on, 80 %, and to test on."""
    digits = importlib.import_module("sklearn.datasets").load_digits()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits.images))
    cut = len(order) * 4 // 5
    return (digits.images / 16).astype("float32")[:, None], digits.target, order[:cut], order[cut:]


class StepMemory:
    """The memory of one training step: the live bytes of each category after every event (a buffer is allocated, freed,
    or moves to another category), and whether the step was in its forward pass.

    The numbers are the pool's own counters, read at every event, so they are exact, including the peak. Batches are
    NumPy arrays whose memory tensors share (cg.asarray). cygrad neither allocates nor frees these bytes, so they are in
    no category. They are shown separately as `external`."""

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
        """The live bytes after every event."""
        return [sum(m.values()) for m in self.moments]

    @property
    def peak(self):
        """The first event after which the live bytes are at their maximum."""
        return self.live.index(max(self.live))


def table(step):
    """The memory table, as lines."""
    at_peak = step.moments[step.peak]
    rows = [*((name, at_peak[name]) for name in CATEGORIES), ("peak", step.peak_bytes)]
    lines = [f"{'memory at the peak of a step':<30}{'bytes':>10}{'share':>10}"]
    lines += [f"  {name:<28}{n:>10,}{n / step.peak_bytes:>10.1%}" for name, n in rows]
    lines += [f"  not counted: the batch, {step.external:,} bytes of NumPy's memory"]
    return lines


def main(model, epochs, batch_size, threads, seed, output, say=print):
    """Run the demo with a model of MODELS and return the test accuracy. Raises DemoError if an option cannot be used or
    a package is missing."""
    path = picture_path(output)             # checked before the training
    require("tqdm", "sklearn", "matplotlib")
    from tqdm.auto import tqdm

    from cygrad.demo.picture import draw

    images, labels, training, test = load()
    if batch_size > len(training):
        raise DemoError(f"--batch-size {batch_size}: there are only {len(training)} training images")
    if threads is not None: cg.set_num_threads(threads)
    make, words = MODELS[model]
    say(f"digits: {len(training)} training images, {len(test)} test images; {words}, Adam, batch {batch_size}, "
        f"{epochs} epochs, seed {seed}, threads {cg.get_num_threads()}")

    rng = np.random.default_rng(seed)
    cg.random.seed(seed)                    # draws the weights and dropout
    net = make()
    solver = cg.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    losses = []
    seconds = 0.0
    n_batches = -(-len(training) // batch_size)
    with tqdm(total=epochs * n_batches, unit="step") as bar:
        for epoch in range(epochs):
            start = time.perf_counter()
            order = rng.permutation(training)
            batches = [order[i:i + batch_size] for i in range(0, len(order), batch_size)]
            if epoch == epochs - 1:         # measure the first step of the last epoch
                step = StepMemory(train, net, solver, images, labels, [batches.pop(0)])
                losses += step.result
            losses += train(net, solver, images, labels, batches)
            seconds += time.perf_counter() - start
            bar.update(n_batches)
            bar.set_postfix(loss=f"{np.mean(losses[-n_batches:]):.4f}")

    scores = net(cg.asarray(images[test])).numpy()
    right = int((scores.argmax(1) == labels[test]).sum())
    accuracy = right / len(test)
    say(f"test accuracy    {accuracy:.2%} ({right} of {len(test)})")
    say(f"steps per second {len(losses) / seconds:,.0f} ({len(losses)} steps in {seconds:.3f} s)")
    for line in table(step): say(line)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(path, losses, n_batches, step, accuracy)
    except OSError as e:
        raise DemoError(f"--output {output}: {e.strerror}") from None
    say(f"picture: {path}")
    return accuracy
