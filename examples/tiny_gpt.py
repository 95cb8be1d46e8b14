"""A GPT from nothing: the forty lines of chapter 5 of the walkthrough, turned from numbers to arrays, learn what names
of Python's modules look like, and invent some.

    pip install 'cygrad[demo]'
    python examples/tiny_gpt.py --output out/tiny_gpt

The same model runs three times: on numbers, on arrays, and on cygrad's tensors. Losses and gradients agree to rounding,
and a table says what one step of a name costs on each. The program takes some seconds, writes picture.png, memory.txt
and memory.html, and ends with status 1 if the gradients differ or nothing was learned."""

import sys

import job
import matplotlib
import numpy as np
from tiny_gpt_numbers import backward, cost, made, on_numbers

import cygrad as cg

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

WIDTH, HEADS, STEPS, BATCH = 32, 4, 16, 32              # numbers for a letter, heads, letters in a row, rows in a step
NAMES = sorted(name for name in sys.stdlib_module_names if not name.startswith("_") and len(name) < STEPS)
LETTERS = "." + "".join(sorted(set("".join(NAMES))))    # a dot begins and ends each name
FUTURE = np.triu(np.full((STEPS, STEPS), -1e9), 1)      # a letter does not see the letters after it


class Array:
    """Chapter 5's Scalar with an array in place of the number. The derivative of a number is a factor; that of an array
    is a function from the gradient of the result to the contribution to the parent."""

    def __init__(self, value, parents=()):
        self.value, self.parents, self.order, self.grad = value, parents, next(made), 0.0

    def __add__(self, other):
        other = array(other)
        return Array(self.value + other.value, ((self, lambda g: fit(g, self)), (other, lambda g: fit(g, other))))

    def __mul__(self, other):
        other = array(other)
        return Array(self.value * other.value, ((self, lambda g: fit(g * other.value, self)),
                                                (other, lambda g: fit(g * self.value, other))))

    def __matmul__(self, other):
        return Array(self.value @ other.value, ((self, lambda g: fit(g @ other.value.swapaxes(-1, -2), self)),
                                                (other, lambda g: fit(self.value.swapaxes(-1, -2) @ g, other))))

    def __pow__(self, n): return Array(self.value ** n, ((self, lambda g: g * n * self.value ** (n - 1)),))

    def __getitem__(self, rows): return Array(self.value[rows], ((self, lambda g: spread(g, rows, self)),))

    def exp(self):
        e = np.exp(self.value)
        return Array(e, ((self, lambda g: g * e),))

    def log(self): return Array(np.log(self.value), ((self, lambda g: g / self.value),))

    def tanh(self):
        t = np.tanh(self.value)
        return Array(t, ((self, lambda g: g * (1 - t * t)),))

    def sum(self, axis, keepdims=True):
        return Array(self.value.sum(axis=axis, keepdims=keepdims),
                     ((self, lambda g: np.broadcast_to(g if keepdims else np.expand_dims(g, axis), self.value.shape)),))

    def reshape(self, *shape):
        return Array(self.value.reshape(shape), ((self, lambda g: g.reshape(self.value.shape)),))

    def swapaxes(self, a, b): return Array(self.value.swapaxes(a, b), ((self, lambda g: g.swapaxes(a, b)),))

    def backward(self): backward(self, np.ones_like(self.value), lambda g, function: function(g))


def array(x): return x if isinstance(x, Array) else Array(np.asarray(x, float))


def fit(g, x):
    """The gradient of `x`, which broadcasting has repeated: the sum over the repetitions."""
    g = g.sum(tuple(range(g.ndim - x.value.ndim)))
    return g.sum(tuple(i for i, n in enumerate(x.value.shape) if n == 1), keepdims=True)


def spread(g, rows, x):
    dx = np.zeros_like(x.value)
    np.add.at(dx, rows, g)                                  # a row that was taken twice gets both gradients
    return dx


# ---- the model: the same lines for arrays and for cygrad's tensors ---------------------------------------------------

def norm(x): return x * ((x * x).sum(axis=-1, keepdims=True) * (1 / WIDTH) + 1e-5) ** -0.5


def softmax(x):
    e = x.exp()
    return e * e.sum(axis=-1, keepdims=True) ** -1.0


def gpt(p, ids):
    """Scores (rows, steps, letters) of what comes after each of the letters `ids`, (rows, steps)."""
    n, t = ids.shape
    x = p["letters"][ids] + p["places"][np.arange(t)]
    seen = norm(x)
    q, k, v = ((seen @ p[w]).reshape(n, t, HEADS, WIDTH // HEADS).swapaxes(1, 2) for w in ("query", "key", "value"))
    weights = softmax(q @ k.swapaxes(2, 3) * (WIDTH // HEADS) ** -0.5 + FUTURE[:t, :t])
    x = x + (weights @ v).swapaxes(1, 2).reshape(n, t, WIDTH) @ p["mix"]
    x = x + (norm(x) @ p["wide"]).tanh() @ p["narrow"]
    return norm(x) @ p["out"]


def loss_of(p, ids):
    """The mean of -log(probability) of a next letter, in nats. `ids` (rows, steps + 1), with -1 after the end."""
    scores, targets = gpt(p, np.maximum(ids[:, :-1], 0)), ids[:, 1:]
    chosen = np.eye(len(LETTERS))[targets] * (targets >= 0)[..., None] * (1 / (targets >= 0).sum())
    total = scores.exp().sum(axis=-1, keepdims=True).log()      # (scores of normalized rows are small enough)
    return ((total + scores * -1.0) * chosen).sum(axis=(0, 1, 2), keepdims=False)


def parameters(seed=0):
    rng, d = np.random.default_rng(seed), WIDTH
    shapes = {"letters": (len(LETTERS), d), "places": (STEPS, d), "query": (d, d), "key": (d, d), "value": (d, d),
              "mix": (d, d), "wide": (d, 4 * d), "narrow": (4 * d, d), "out": (d, len(LETTERS))}
    return {name: rng.normal(0, shape[0] ** -0.5, shape) for name, shape in shapes.items()}


# ---- training --------------------------------------------------------------------------------------------------------

def rows_of(names):
    """The letters of names as rows of numbers, with -1 after the end."""
    rows = np.full((len(names), STEPS + 1), -1)
    for row, name in zip(rows, names, strict=True): row[:len(name) + 2] = [LETTERS.index(c) for c in f".{name}."]
    return rows


def train(p, steps, rng):
    """Adam. Returns the losses; `p` has the trained parameters."""
    losses, means, squares = [], dict.fromkeys(p, 0.0), dict.fromkeys(p, 0.0)
    for step in range(1, steps + 1):
        arrays = {k: Array(v) for k, v in p.items()}
        loss = loss_of(arrays, rows_of(rng.choice(NAMES, BATCH)))
        loss.backward()
        losses.append(float(loss.value))
        for k, x in arrays.items():
            means[k] = 0.9 * means[k] + 0.1 * x.grad
            squares[k] = 0.99 * squares[k] + 0.01 * x.grad ** 2
            m, s = means[k] / (1 - 0.9 ** step), squares[k] / (1 - 0.99 ** step)
            p[k] = p[k] - 0.01 * (1 - step / steps) * m / (s ** 0.5 + 1e-8)
    return losses


def invent(p, rng):
    ids = [0]
    while len(ids) < STEPS and (len(ids) == 1 or ids[-1]):
        scores = gpt({k: Array(v) for k, v in p.items()}, np.array([ids])).value[0, -1]
        ids.append(rng.choice(len(LETTERS), p=np.exp(scores) / np.exp(scores).sum()))
    return "".join(LETTERS[i] for i in ids if i)


def pairs(rows):
    """The loss of the best guess that knows the letter before: frequencies of pairs of letters."""
    x, y = rows[:, :-1][rows[:, 1:] >= 0], rows[:, 1:][rows[:, 1:] >= 0]
    counts = np.zeros((len(LETTERS),) * 2)
    np.add.at(counts, (x, y), 1)
    return -np.log((counts / counts.sum(1, keepdims=True).clip(1))[x, y]).mean()


# ---- what a step costs -----------------------------------------------------------------------------------------------

def on_arrays(p, ids):
    arrays = {k: Array(v) for k, v in p.items()}
    loss = loss_of(arrays, ids)
    loss.backward()
    return float(loss.value), {k: x.grad for k, x in arrays.items()}


def on_tensors(p, ids):
    tensors = {k: cg.tensor(v, requires_grad=True) for k, v in p.items()}
    with cg.record(): loss = loss_of(tensors, ids)
    loss.backward()
    return loss.item(), {k: np.asarray(x.grad) for k, x in tensors.items()}


def main():
    options = job.options(__doc__, "out/tiny_gpt", steps=400)
    rng, p, every = np.random.default_rng(0), parameters(), rows_of(NAMES)
    one = every[NAMES.index("tracemalloc"):][:1]
    with cg.memory.profile() as profile: on_tensors(p, one)
    costs = {"numbers": cost(on_numbers, p, one[0][one[0] >= 0].tolist(), HEADS), "arrays": cost(on_arrays, p, one),
             "cygrad": (*cost(on_tensors, p, one)[:2], profile.peak_bytes)}
    losses = train(p, options.steps, rng)
    learned = float(loss_of({k: Array(v) for k, v in p.items()}, every).value)
    guess, uniform = pairs(every), np.log(len(LETTERS))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(losses, color="#30638e")
    for value, name in ((uniform, "any letter"), (guess, "pairs of letters")):
        axes.axhline(value, color="#94a3b8")
        axes.annotate(name, (len(losses), value), ha="right", va="bottom")
    axes.set(xlabel="step", ylabel="nats for a letter", ylim=(0, None))
    job.save_figure(figure, options.output / "picture.png")

    (value, wanted), wrong = costs["numbers"][0], []
    for name, ((loss, gradients), *_) in costs.items():
        off = max(abs(loss - value), *(np.abs(g - wanted[k]).max() for k, g in gradients.items()))
        if not off < 1e-9: wrong.append(f"loss and gradients of {name} differ by {off:.1e} from those of numbers")
    if not learned < guess: wrong.append(f"{learned:.2f} nats for a letter; pairs of letters have {guess:.2f}")
    lines = [f"nats for a letter: {learned:.2f}; any letter {uniform:.2f}, pairs of letters {guess:.2f}",
             "invented: " + ", ".join(invent(p, rng) for _ in range(8))]
    memory = [f"a step of one name on {name}: {1e3 * seconds:,.2f} ms, {peak:,} bytes at its peak"
              for name, (_, seconds, peak) in costs.items()]
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
