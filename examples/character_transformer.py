"""A character-level transformer that writes like Python's documentation:

    pip install 'cygrad[demo]'
    python examples/character_transformer.py --output out/transformer

The model reads up to 128 characters and predicts the next one. It is a decoder: layers of causal attention, in which
position i sees positions 0 to i, so each window of the text trains 128 predictions at once. The run takes about six
minutes on two cores. `--quick` trains a smaller model for ten seconds. A sample of a full run, which another machine or
another version of Python will not repeat:

    If a calling "__getitem__()" method object the method will return the class defined in the result is created by
    "__new__()" method.

The test is the held-out text. A character has to take fewer bits than with n-grams, which count what follows the last
characters and know nothing else. In the run above, the best of them, 5-grams, took 1.843 bits, and the transformer took
1.669. The windows of the evaluation are apart, so their first characters are predicted from little, while n-grams
always see their whole context. Sampled words are looked up in the training text: more than nine tenths of them were
found, and less than a tenth with 3-grams.

The program writes samples.txt, picture.png, memory.txt and memory.html into the folder, and ends with status 1 if the
network has not learned. The reports on memory show what the peak of an update consists of. Of 81 MiB, 64 are kept for
backward; in each layer the MLP takes half of them, because it is four times as wide as the rest. text.py has the text,
the n-grams and what else character_lstm.py needs too."""

import sys
from typing import NamedTuple

import numpy as np
import text

import cygrad as cg
from cygrad import nn


class Size(NamedTuple):
    width: int
    heads: int
    layers: int
    length: int                 # characters of a window
    batch: int
    dropout: float
    rate: float
    steps: int


FULL = Size(width=128, heads=4, layers=4, length=128, batch=16, dropout=0.1, rate=2e-3, steps=2500)
QUICK = Size(width=64, heads=4, layers=1, length=32, batch=16, dropout=0.0, rate=6e-3, steps=800)


class Transformer(nn.Module):
    """Scores (n, t, SYMBOLS) of the characters that follow those of x (n, t), t at most `length`."""

    def __init__(self, size):
        self.characters = nn.Embedding(len(text.SYMBOLS), size.width)
        self.positions = nn.Embedding(size.length, size.width)
        for embedding in (self.characters, self.positions): nn.init.normal_(embedding.weight, std=0.1)
        self.blocks = nn.Sequential(*(
            nn.TransformerBlock(size.width, size.heads, 4 * size.width, size.dropout, "gelu", batch_first=True,
                                norm_first=True, causal=True) for _ in range(size.layers)))
        self.norm = nn.LayerNorm(size.width)
        self.scores = nn.Linear(size.width, len(text.SYMBOLS))

    def forward(self, x):
        h = self.characters(x) + self.positions(cg.arange(x.shape[1]))
        return self.scores(self.norm(self.blocks(h)))


def main():
    options = text.options(__doc__, "out/transformer")
    size = QUICK if options.quick else FULL
    steps = size.steps if options.steps is None else options.steps
    training, held_out = text.load()
    cg.random.seed(0)
    net = Transformer(size)

    def loss(windows): return text.loss(net(windows[:, :-1]), windows[:, 1:])

    def bits(windows): return loss(windows) / np.log(2)

    loader = cg.data.DataLoader(text.windows(training, size.length, 1), size.batch, shuffle=True, seed=0)
    apart = text.windows(held_out, size.length, size.length)
    evaluator = cg.trainers.Evaluator(bits, cg.data.DataLoader(apart, len(apart)).next)
    run = text.trainer(net, loss, loader.next, evaluator, steps, size.rate)
    run.train()

    def predict(codes): return net(codes[None, -size.length:]).numpy()[0, -1]

    return text.finish("transformer", lambda: predict, text.bits_by_position(net, held_out, size.length), run, training,
                       held_out, options.output, options.quick)


if __name__ == "__main__": sys.exit(main())
