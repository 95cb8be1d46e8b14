"""A character-level LSTM that writes like Python's documentation:

    pip install 'cygrad[demo]'
    python examples/character_lstm.py --output out/lstm

The model reads one character after the other and predicts the next one from its state. Training cuts the text into 32
streams that are read side by side, 64 characters at a time. Each update starts with the states at which the one before
ended, so the state can carry more than 64 characters, but gradients end at the cut (truncated backpropagation through
time). The run takes about three minutes on two cores. `--quick` trains a smaller model for ten seconds. A sample of a
full run, which another machine or another version of Python will not repeat:

    A code block is not recognized in if the code block is not part of assignment is the module, it is a method and
    expression will not be used by the specification occurs is used in a sequence of the *step* arguments.

The tests, the files and the exit status are those of character_transformer.py. In the run above, a held-out character
took 1.573 bits, and 1.843 with 5-grams. The picture shows what carried states do: few updates begin with zeros, so the
first characters after a state of zeros are predicted badly. Of 46 MiB at the peak of an update, 28 are kept for
backward. text.py has what both programs need."""

import sys
from typing import NamedTuple

import numpy as np
import text

import cygrad as cg
from cygrad import nn


class Size(NamedTuple):
    width: int
    layers: int
    length: int                 # characters between two updates
    streams: int
    dropout: float
    rate: float
    steps: int


FULL = Size(width=256, layers=2, length=64, streams=32, dropout=0.2, rate=4e-3, steps=2000)
QUICK = Size(width=96, layers=1, length=32, streams=32, dropout=0.0, rate=1e-2, steps=600)


class LSTM(nn.Module):
    """Scores (n, t, SYMBOLS) of the characters that follow those of x (n, t), and the state after the last of them."""

    def __init__(self, size):
        self.characters = nn.Embedding(len(text.SYMBOLS), size.width)
        self.lstm = nn.LSTM(size.width, size.width, size.layers, batch_first=True, dropout=size.dropout)
        self.dropout = nn.Dropout(size.dropout)
        self.scores = nn.Linear(size.width, len(text.SYMBOLS))

    def forward(self, x, state=None):
        y, state = self.lstm(self.characters(x), state)
        return self.scores(self.dropout(y)), state


class Stream:
    """A model that goes on with the state after its last call."""

    def __init__(self, net): self.net, self.state = net, None

    def __call__(self, x):
        scores, (h, c) = self.net(x, self.state)
        self.state = h.detach(), c.detach()         # (with its graph, it would keep all earlier windows)
        return scores


def streams(codes, n, length):
    """The text as n streams: rows k n to (k + 1) n - 1 are the windows number k of all streams."""
    size = (len(codes) - 1) // n // length * length
    side_by_side = [text.windows(codes[i * size:(i + 1) * size + 1], length, length) for i in range(n)]
    return np.stack(side_by_side, 1).reshape(-1, length + 1)


def main():
    options = text.options(__doc__, "out/lstm")
    size = QUICK if options.quick else FULL
    steps = size.steps if options.steps is None else options.steps
    training, held_out = text.load()
    cg.random.seed(0)
    net = LSTM(size)
    stream = Stream(net)
    loader = cg.data.DataLoader(streams(training, size.streams, size.length), size.streams)

    def loss(windows): return text.loss(stream(windows[:, :-1]), windows[:, 1:])

    def bits(windows): return text.loss(net(windows[:, :-1])[0], windows[:, 1:]) / np.log(2)

    def reset(i):
        if i % len(loader) == 0: stream.state = None        # an epoch of the text begins

    apart = text.windows(held_out, 1000, 1000)
    evaluator = cg.trainers.Evaluator(bits, cg.data.DataLoader(apart, len(apart)).next)
    run = text.trainer(net, loss, loader.next, evaluator, steps, size.rate, reset)
    run.train()

    def predictor():
        reader = Stream(net)
        return lambda codes: reader(codes[None] if reader.state is None else codes[None, -1:]).numpy()[0, -1]

    positions = text.bits_by_position(lambda x: net(x)[0], held_out, 256)
    return text.finish("LSTM", predictor, positions, run, training, held_out, options.output, options.quick)


if __name__ == "__main__": sys.exit(main())
