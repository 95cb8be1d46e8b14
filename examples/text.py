"""What character_transformer.py and character_lstm.py share: the text, n-gram models to compare with, training,
samples, and the files of a run.

The text is the prose of the help on Python's language, which is part of its standard library (`help("while")` prints
some of it). It differs between versions of Python, so nothing here depends on its words."""

import argparse
import re
import string
import sys
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

import matplotlib
import numpy as np

import cygrad as cg

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

SYMBOLS = "\n" + string.printable[:95]                              # printable ASCII; a paragraph ends with "\n"
CODES = {c: i for i, c in enumerate(SYMBOLS)}
TYPOGRAPHIC = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
ORDERS, TRIGRAM = 5, 3                                              # n-grams of 1 to 5 characters
EPOCHS = 10                                                         # evaluations of a run
TEMPERATURE, LENGTH = 0.7, 400                                      # of samples
PROMPTS = "The ", "If ", "A "
COLORS = {"model": "#d1495b", "training": "#edae49", "n-gram": "#30638e"}


# ---- the text --------------------------------------------------------------------------------------------------------

def paragraphs(topic):
    """The paragraphs of a topic that are prose, each as one line: no headings, tables, grammar or code."""
    for text in re.split(r"\n\s*\n", topics[topic].translate(TYPOGRAPHIC)):
        line = " ".join(text.encode("ascii", "ignore").decode().split())
        if re.fullmatch(r"[A-Za-z].{40,}[.:]", line) and not re.search(r"::=|>>>|---|===|\*\*\*", line): yield line


def load():
    """The text to train on and the held-out text, as arrays of codes. Topics repeat each other, so each paragraph
    counts once. The last tenth of the paragraphs of each topic is held out."""
    seen, training, held_out = set(), [], []
    for topic in sorted(topics):
        new = [p for p in dict.fromkeys(paragraphs(topic)) if p not in seen]
        seen.update(new)
        end = len(new) - len(new) // 10
        training += new[:end]
        held_out += new[end:]
    return encode("\n".join(training)), encode("\n".join(held_out))


def encode(text): return np.array([CODES[c] for c in text])


def decode(codes): return "".join(SYMBOLS[i] for i in codes)


def windows(codes, length, step):
    """All windows of length + 1 codes that begin at multiples of `step`, (n, length + 1): the input is the first
    `length` of them, the target the last. The result is a view, which takes no memory."""
    return np.lib.stride_tricks.sliding_window_view(codes, length + 1)[::step]


# ---- n-grams ---------------------------------------------------------------------------------------------------------

class NGrams:
    """Counts of what follows 0, 1, ..., ORDERS - 1 characters. The probabilities of each order are interpolated with
    those of the order below (Witten and Bell 1991): a context that was followed by t different characters in n places
    gives the lower order the weight t / (n + t)."""

    def __init__(self, codes):
        self.tables = []
        for n in range(ORDERS):
            keys, rows = np.unique(self.keys(windows(codes, n, 1)[:, :n]), return_inverse=True)
            counts = np.bincount(rows * len(SYMBOLS) + codes[n:], minlength=len(keys) * len(SYMBOLS))
            self.tables.append((keys, counts.reshape(-1, len(SYMBOLS))))

    def keys(self, contexts):
        """A number for each row of `contexts` (rows, n)."""
        return contexts @ len(SYMBOLS) ** np.arange(contexts.shape[1])

    def probabilities(self, contexts):
        """Those of the next character after the rows of contexts (rows, at least ORDERS - 1), (rows, SYMBOLS), for
        each order."""
        p = np.full((len(contexts), len(SYMBOLS)), 1 / len(SYMBOLS))
        for n, (keys, counts) in enumerate(self.tables):
            wanted = self.keys(contexts[:, contexts.shape[1] - n:])
            at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
            c = np.where((keys[at] == wanted)[:, None], counts[at], 0)
            total, different = c.sum(1, keepdims=True), (c > 0).sum(1, keepdims=True)
            p = np.where(total > 0, (c + different * p) / np.maximum(total + different, 1), p)
            yield p

    def bits(self, codes):
        """The mean bits of a character of a text, for each order from 1."""
        w = windows(codes, ORDERS - 1, 1)
        return [-np.log2(p[np.arange(len(w)), w[:, -1]]).mean() for p in self.probabilities(w[:, :-1])]

    def predict(self, order):
        """The logarithms of the probabilities of an order after some codes, as `sample` wants them."""
        def scores(codes):
            context = np.r_[np.zeros(ORDERS, int), codes][-ORDERS:]
            return np.log([*self.probabilities(context[None])][order - 1][0])
        return scores


# ---- training --------------------------------------------------------------------------------------------------------

def loss(scores, targets):
    """The mean cross-entropy of scores (n, steps, SYMBOLS) and targets (n, steps)."""
    return cg.cross_entropy(scores.reshape(-1, len(SYMBOLS)), targets.reshape(-1))


def trainer(net, step, feeder, evaluator, steps, rate, reset=()):
    """A Trainer for `steps` updates: AdamW, whose rate rises for a tenth of the steps and then falls along a cosine,
    with clipped gradients. `step` returns the loss of a batch, `reset` is called before each update."""
    solver = cg.optim.AdamW(net.named_parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.1)
    warm_up = max(1, steps // 10)
    schedule = cg.optim.SequentialLR(
        solver, [cg.optim.LinearLR(solver, 0.1, total_iters=warm_up),
                 cg.optim.CosineAnnealingLR(solver, max(1, steps - warm_up), eta_min=rate / 20)], [warm_up])
    updater = cg.trainers.Updater(
        solver, step, feeder, update_callback_on_start=lambda i: solver.clip_grad_by_global_norm(1.0),
        update_callback_on_finish=lambda i: schedule.step())
    return cg.trainers.Trainer(updater, evaluator, max_epoch=min(steps, EPOCHS),
                               iter_per_epoch=max(1, steps // EPOCHS), update_callback_on_start=reset)


def bits_by_position(predict, held_out, length):
    """(ends, mean bits): how well characters are predicted after 1, 2, 3 to 4, 5 to 8, ... others. `predict` gives
    the scores (n, length, SYMBOLS) of windows (n, length) of the held-out text."""
    w = windows(held_out, length, length // 2)
    scores = predict(w[:, :-1])
    each = cg.cross_entropy(scores.reshape(-1, len(SYMBOLS)), w[:, 1:].reshape(-1), reduction="none")
    mean = each.numpy().reshape(-1, length).mean(0) / np.log(2)
    ends = [0, *2 ** np.arange(length.bit_length())]
    return np.array(ends[1:]), np.array([mean[a:b].mean() for a, b in zip(ends, ends[1:], strict=False)])


# ---- samples ---------------------------------------------------------------------------------------------------------

def sample(predict, prompt, rng):
    """LENGTH characters after a prompt. predict(codes) returns the scores (SYMBOLS,) of the next one."""
    codes = encode(prompt)
    for _ in range(LENGTH):
        scores = predict(codes).astype("float64") / TEMPERATURE
        p = np.exp(scores - scores.max())
        codes = np.append(codes, rng.choice(len(SYMBOLS), p=p / p.sum()))
    return decode(codes)


def words(text): return re.findall(r"[A-Za-z]{4,}", text)


def known_words(samples, codes):
    """The share of the words of four letters or more that occur in the training text. The last word of a sample, which
    may be cut, does not count."""
    known = {*words(decode(codes))}
    found = [w in known for text in samples for w in words(text)[:-1]]
    return sum(found) / max(1, len(found))


# ---- the files of a run ----------------------------------------------------------------------------------------------

class Results(NamedTuple):
    title: str
    bits: float                                 # of a held-out character
    n_grams: list[float]                        # the same of n-grams of order 1, 2, ...
    known: float                                # the share of known words in samples of the model
    known_trigram: float                        # and of the 3-grams
    history: cg.trainers.History
    profile: cg.memory.profile                  # of one update
    positions: tuple[np.ndarray, np.ndarray]    # of bits_by_position


def options(description, folder):
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(folder), help="the folder (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a small model, for some seconds")
    parser.add_argument("--steps", type=int, help="the number of updates; above 10, rounded down to tens")
    return parser.parse_args()


def finish(title, predictor, positions, trained, training, held_out, folder, quick):
    """Evaluate and sample the model of a Trainer, profile one more update, write the files and print. `predictor` makes
    a function for `sample`, `positions` are those of bits_by_position. Returns the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, n_grams = np.random.default_rng(0), NGrams(training)
    samples = [sample(predictor(), prompt, rng) for prompt in PROMPTS]
    trigram = [sample(n_grams.predict(TRIGRAM), prompt, rng) for prompt in PROMPTS]
    bits = trained.evaluator[0].evaluate(trained.iteration)
    with cg.memory.profile() as profile: trained.updater[0].update(trained.iteration)
    results = Results(title, bits, n_grams.bits(held_out), known_words(samples, training),
                      known_words(trigram, training), trained.history, profile, positions)
    lines = [f"{len(training):,} characters to train on, {len(held_out):,} held out",
             *(f"{n}-grams: {b:.3f} bits per held-out character" for n, b in enumerate(results.n_grams, 1)),
             f"{title}: {bits:.3f} bits per held-out character",
             f"known words: {results.known:.1%} of those sampled, {results.known_trigram:.1%} with 3-grams"]
    memory = ["memory of one update", *profile.table(by="category").splitlines(), "",
              *profile.table(by="operation").splitlines(), "", *profile.table(by="layer").splitlines()]
    (folder / "samples.txt").write_text("\n\n".join([*samples, "With 3-grams:", *trigram]) + "\n")
    (folder / "memory.txt").write_text("\n".join(memory) + "\n")
    profile.save(folder / "memory.html")
    draw(folder / "picture.png", results)
    print(*lines, "", samples[0], "", *memory[:memory.index("")], "", sep="\n")
    print(f"written to {folder}: samples.txt, picture.png, memory.txt, memory.html")
    wrong = complaints(results, quick)
    for line in wrong: print(f"not learned: {line}", file=sys.stderr)
    return 1 if wrong else 0


def complaints(results, quick):
    """What the model should have learned and has not; empty if all is well. Limits are those of 3-grams for a quick run
    and of the best n-grams otherwise."""
    order = TRIGRAM if quick else 1 + int(np.argmin(results.n_grams))
    limit, share, wrong = results.n_grams[order - 1] - 0.05, 0.25 if quick else 0.8, []
    if not results.bits < limit:
        wrong.append(f"a held-out character takes {results.bits:.3f} bits; it should be less than {limit:.3f}, 0.05 "
                     f"below {order}-grams")
    if results.known < share:
        wrong.append(f"{results.known:.1%} of the sampled words are known; it should be at least {share:.0%}")
    return wrong


def draw(path, results):
    """The picture: bits during training, bits by position, and what the peak of an update consists of."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    for n, bits in enumerate(results.n_grams[1:], 2):
        left.axhline(bits, color=COLORS["n-gram"], lw=0.8, alpha=0.7)
        left.annotate(f"{n}-grams", (1, bits), xycoords=("axes fraction", "data"), xytext=(-2, 2), ha="right",
                      textcoords="offset points", color=COLORS["n-gram"], fontsize=8)
    if results.history.rows:
        steps = np.array(results.history["iteration"]) + 1
        left.plot(steps, np.array(results.history["loss"]) / np.log(2), ".-", color=COLORS["training"],
                  label="training text, mean since the last point")
        left.plot(steps, results.history["bits"], "o-", color=COLORS["model"], label="held-out text")
        left.legend(frameon=False)
    left.set(xlabel="update", ylabel="bits per character", title=results.title)
    ends, bits = results.positions
    middle.semilogx(ends, bits, "o-", color=COLORS["model"], label=results.title)
    middle.semilogx(np.arange(1, ORDERS), results.n_grams[1:], "s--", color=COLORS["n-gram"], label="n-grams")
    middle.set_xticks(ends, ends)
    middle.minorticks_off()
    middle.set(xlabel="characters that are seen", ylabel="bits per held-out character",
               title="what more context is worth")
    middle.legend(frameon=False)
    sums = {}
    for row in results.profile.at_peak(): sums[row.category] = sums.get(row.category, 0) + row.bytes
    named = sorted(sums.items(), key=lambda item: item[1])
    bars = right.barh([name for name, _ in named], [n / 2**20 for _, n in named], color=COLORS["n-gram"])
    right.bar_label(bars, [f"{n / 2**20:.2f}" for _, n in named], padding=3)
    right.set(xlabel="MiB", title=f"the peak of an update: {results.profile.peak_bytes / 2**20:.1f} MiB")
    right.margins(x=0.15)
    for axes in (left, middle, right): axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
