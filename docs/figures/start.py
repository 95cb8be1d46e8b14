"""Chapters 1 to 4 and 6: a gradient, digits as they are learned, a training resumed, overflow, broadcasting."""

import math
import tempfile

import numpy as np
from drawing import page

import cygrad as cg
from cygrad import nn
from cygrad.trainers import Trainer, Updater


def rounded(t, digits=10):
    """The numbers of a tensor, which a page can hold: infinity and NaN are words."""
    return [round(v, digits) if math.isfinite(v) else str(v) for v in t.tolist()]


# ---- chapter 1: a function and its gradient --------------------------------------------------------------------------

def slope():
    """Points of x^2 - 4 x from -1 to 5 with their gradients."""
    x = (cg.arange(61, dtype=cg.float64) / 10 - 1).attach_grad()
    with cg.record(): f = x * x - 4 * x
    f.backward()
    return page("slope", {"x": rounded(x), "f": rounded(f), "grad": rounded(x.grad)})


# ---- chapters 2 and 3: digits ----------------------------------------------------------------------------------------

def digits():
    """Images (1797, 64) between 0 and 1, labels, and the rows for training and for the test."""
    from sklearn.datasets import load_digits

    data = load_digits()
    rows = np.random.default_rng(0).permutation(len(data.data))
    return (data.data / 16).astype("float32"), data.target, rows[:1437], rows[1437:]


def learning(epochs=12, shown=(0, 1, 3, 5)):
    """The answers of chapter 2's network about images of the test after each epoch."""
    images, labels, training, test = digits()
    cg.random.seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    loader = cg.data.DataLoader((images[training], labels[training]), 64, shuffle=True, seed=0)
    solver = cg.optim.Adam(net.parameters(), lr=1e-3)
    some = test[list(shown)]
    chances, right = [], []

    def note():
        chances.append([[round(100 * p) for p in row] for row in cg.softmax(net(images[some]), 1).tolist()])
        right.append(int((net(images[test]).numpy().argmax(1) == labels[test]).sum()))

    note()
    for _ in range(epochs):
        for x, digit in loader:
            net.zero_grad()
            with cg.record(): loss = cg.cross_entropy(net(x), digit)
            loss.backward()
            solver.update()
        note()
    pixels = (16 * images[some]).astype(int).tolist()
    return page("learning", {"pixels": pixels, "labels": labels[some].tolist(), "chances": chances, "right": right})


def resume(epochs=8):
    """Losses by epoch: of chapter 3's training, of trainings that go on from its checkpoint after each epoch, and of
    trainings that have its weights alone."""
    images, labels, training, _ = digits()

    def run(folder, epochs, seed=0, weights=None, resume=None):
        cg.random.seed(seed)
        net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
        if weights is not None: net.load_state_dict(weights)
        loader = cg.data.DataLoader((images[training], labels[training]), 64, shuffle=True, seed=seed)
        solver = cg.optim.Adam(net.parameters(), lr=1e-3)
        updater = Updater(solver, lambda x, digit: cg.cross_entropy(net(x), digit), loader.next)
        history = Trainer(updater, None, folder, epochs, progress=False).train(resume=resume)
        return net.state_dict(), [round(loss, 4) for loss in history["loss"]]

    states, alone = [], []
    with tempfile.TemporaryDirectory() as name:
        _, whole = run(f"{name}/whole", epochs)
        for k in range(1, epochs):
            weights, _ = run(f"{name}/{k}", k)
            alone.append(run(None, epochs - k, 1, weights)[1])
            states.append(run(f"{name}/{k}", epochs, resume=f"{name}/{k}")[1][k:])
    return page("resume", {"whole": whole, "states": states, "weights": alone})


# ---- chapter 4: overflow ---------------------------------------------------------------------------------------------

WAYS = {"log(1 + exp(x))": lambda x: cg.log(1 + cg.exp(x)), "log1p(exp(x))": lambda x: cg.log1p(cg.exp(x)),
        "logaddexp(x, 0)": lambda x: cg.logaddexp(x, 0.0), "softplus(x)": cg.softplus}


def nan():
    """The values and gradients of log(1 + e^x) by four expressions in float32, and by the last one in float64."""
    def computed(f, dtype):
        x = cg.arange(-120, 130, 10).astype(dtype).attach_grad()
        with cg.record(): y = f(x)
        y.backward()
        return [[float(f"{v:.6g}") if math.isfinite(v) else str(v) for v in pair]
                for pair in zip(y.tolist(), x.grad.tolist(), strict=True)]

    ways = {name: computed(f, "float32") for name, f in WAYS.items()}
    return page("nan", {"x": list(range(-120, 130, 10)), "ways": ways, "exact": computed(cg.softplus, "float64")})


# ---- chapter 6: broadcasting -----------------------------------------------------------------------------------------

def broadcast():
    return page("broadcast")


FIGURES = {"slope.html": slope, "learning.html": learning, "resume.html": resume, "nan.html": nan,
           "broadcast.html": broadcast}
