"""Sample calls and NumPy references of ops/layers/recurrent."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, real, sigmoid_like


def lstm_cell(z, _, h, c):
    i, f, g, o = np.split(z, 4, -1)
    c = sigmoid_like(f) * c + sigmoid_like(i) * np.tanh(g)
    return sigmoid_like(o) * np.tanh(c), c


def gru_cell(x, s, h, c):
    (xr, xu, xn), (sr, su, sn) = np.split(x, 3, -1), np.split(s, 3, -1)
    u = sigmoid_like(xu + su)
    return (1 - u) * np.tanh(xn + sigmoid_like(xr + sr) * sn) + u * h, c


CELLS = {"lstm": lstm_cell, "gru": gru_cell, "rnn": lambda z, _, h, c: (np.tanh(z), c),
         "rnn_relu": lambda z, _, h, c: (np.maximum(z, 0), c)}


def layer_like(name, x, w_ih, w_hh, b_ih, b_hh, h, c, reverse=False, lengths=None):
    """y and the last states of one layer in one direction."""
    steps, y = len(x), np.zeros((*x.shape[:2], h.shape[-1]), x.dtype)
    lengths = np.full(x.shape[1], steps) if lengths is None else np.asarray(lengths)
    for t in reversed(range(steps)) if reverse else range(steps):
        xs, ss = x[t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        new, cell = CELLS[name](xs if name == "gru" else xs + ss, ss, h, c)
        active = (t < lengths)[:, None]
        h, c = np.where(active, new, h), c if c is None else np.where(active, cell, c)
        y[t] = np.where(active, h, 0)
    return y, h, c


def flattened(outputs):
    return np.concatenate([a.ravel() for a in outputs if a is not None])


def sampled(name):
    lstm = name == "lstm"
    factor = {"lstm": 4, "gru": 3}.get(name, 1)

    def like(x, w_ih, w_hh, b_ih, b_hh, h0, c0=None, reverse=False, lengths=None):
        """Everything that the layer returns; in reverse, the second half of two directions."""
        first = layer_like(name, x, w_ih, w_hh, b_ih, b_hh, h0, c0, reverse, lengths)
        return flattened(first)

    def apply(x, w_ih, w_hh, b_ih, b_hh, h0, c0, reverse, lengths):
        states = [None if s is None else cg.expand_dims(s, 0) for s in (h0, c0)]
        f = cg.ops.ROWS[name].function
        weights = [w_ih, w_hh, b_ih, b_hh]
        if reverse:                                 # both directions, with nothing in the first
            states = [None if s is None else cg.concat([cg.zeros(s.shape, dtype=s.dtype), s]) for s in states]
            weights = [cg.zeros(w.shape, dtype=w.dtype) for w in weights] + weights
        out = f(x, weights, *states[:1 + lstm], bidirectional=reverse, lengths=lengths)
        y, last = out[0], out[1] if lstm else (out[1],)
        if reverse: y = y[..., w_hh.shape[1]:]
        return cg.concat([cg.reshape(y, (-1 if y.size else 0,)), *[cg.reshape(a[-1], (a[-1].size,)) for a in last]])

    if lstm:
        def tested(x, w_ih, w_hh, b_ih, b_hh, h0, c0, reverse=False, lengths=None):
            return apply(x, w_ih, w_hh, b_ih, b_hh, h0, c0, reverse, lengths)
    else:
        def tested(x, w_ih, w_hh, b_ih, b_hh, h0, reverse=False, lengths=None):
            return apply(x, w_ih, w_hh, b_ih, b_hh, h0, None, reverse, lengths)

    def arrays(steps, batch, width, hidden):
        made = [real(steps, batch, width), real(factor * hidden, width, seed=1), real(factor * hidden, hidden, seed=2),
                real(factor * hidden, seed=3), real(factor * hidden, seed=4), real(batch, hidden, seed=5)]
        return made + ([real(batch, hidden, seed=6)] if lstm else [])

    states = {"lstm": "w_hh c0 gates cells", "gru": "w_hh h0 gates hiddens"}.get(name, "w_hh hiddens")
    kept = dict.fromkeys(["x", "w_ih", "w_hh", "b_ih", "b_hh", "h0", *["c0"] * lstm], states)
    kept["x"] += " w_ih"
    kept["w_ih"] += " x"
    kept["w_hh"] += " h0 hiddens"
    return Sampled(name, like,
        lambda: [call(*arrays(3, 2, 3, 2)), call(*arrays(1, 1, 1, 1)), call(*arrays(2, 0, 3, 2)),
                 call(*arrays(2, 2, 0, 3))],
        kept, tested=tested)


SAMPLES = [sampled(name) for name in CELLS]
