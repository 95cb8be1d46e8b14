"""Chapter 16: the bytes of a training step of a small language model."""

import numpy as np
from drawing import CATEGORIES, box, page, svg, text

import cygrad as cg
from cygrad import nn


class Model(nn.Module):
    """Scores (n, steps, characters) of what follows each of the characters x (n, steps)."""

    def __init__(self, characters=96, width=128, layers=2, length=64):
        self.characters, self.positions = nn.Embedding(characters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(
            nn.TransformerBlock(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True, causal=True)
            for _ in range(layers)))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, x):
        h = self.characters(x) + self.positions(np.arange(x.shape[1]))
        return self.scores(self.norm(self.blocks(h)))


def training(model):
    """A training step of the model with Adam, as a function of characters (n, steps) and the ones that follow."""
    solver = cg.optim.Adam(model.parameters(), lr=1e-3)

    def step(x, target):
        solver.zero_grad()
        with cg.record():
            scores = model(x)
            loss = cg.cross_entropy(scores.reshape(-1, scores.shape[-1]), target.reshape(-1))
        loss.backward()
        solver.update()
        return loss

    return step


def batches():
    """The peak of a step by category, for batches of 1 to 32 sequences, from plans."""
    step, peaks = training(Model()), {}
    for n in (1, 2, 4, 8, 16, 32):
        x = cg.zeros((n, 64), "int64")
        sums = dict.fromkeys(CATEGORIES, 0)
        for row in cg.memory.plan(step, x, x).at_peak(): sums[row.category] += row.bytes
        peaks[n] = sums
    longest, parts = max(sum(sums.values()) for sums in peaks.values()), [text(20, 22, "sequences", weight="bold")]
    parts.append(text(100, 22, "bytes at the peak of a step", weight="bold"))
    for i, (n, sums) in enumerate(peaks.items()):
        x, y = 100.0, 34 + 30 * i
        parts.append(text(70, y + 16, f"{n}", "end"))
        for category, color in CATEGORIES.items():
            width = 460 * sums[category] / longest
            if width: parts.append(box(x, y, width, 22, color, "", f"{category}: {sums[category]:,} bytes"))
            x += width
        parts.append(text(x + 6, y + 16, f"{sum(sums.values()):,}"))
    y = 34 + 30 * len(peaks) + 10
    for i, (category, color) in enumerate(CATEGORIES.items()):
        parts += [box(20 + 106 * i, y, 12, 12, color, "", category), text(37 + 106 * i, y + 11, category)]
    return svg(660, y + 24, parts)


def accounts():
    """The page with the bytes of a model of another size, by the formulas of the chapter."""
    states = {}
    for make in (cg.optim.Adam, cg.optim.Momentum, cg.optim.Sgd):
        parameter = cg.ones(1000).attach_grad()
        solver = make(lr=0.1)
        solver.set_parameters([parameter])
        states[make.__name__] = cg.memory.stats()["by_category"]["optimizer"] // parameter.nbytes
        del solver
    colors = {name: CATEGORIES[name] for name in ("parameters", "optimizer", "gradients", "saved")}
    return page("model", {"states": states, "colors": colors, "characters": Model().scores.weight.shape[0]})


FIGURES = {"batches.svg": batches, "model.html": accounts}
