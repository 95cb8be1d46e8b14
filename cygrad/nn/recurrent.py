"""Recurrent layers over whole sequences, LSTM, GRU and RNN, and their cells, which compute one step."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.nn.factory import check_features, drawing, floating, size
from cygrad.nn.module import Module
from cygrad.ops.layers.recurrent import gru, lstm, rnn

PARTS = "weight_ih", "weight_hh", "bias_ih", "bias_hh"


class RecurrenceBase(Module):
    """The base of the layers and the cells: the parameters, whose names _parts() yields."""

    gates = 1
    operator: Any = None
    ndims, wanted = (2, 3), "(steps, input_size) or, for a batch, have 3 dimensions"

    def _set_up(self, input_size, hidden_size, bias, device, dtype, generator, parts):
        """Make the parameters of `parts`: (suffix of the names, number of inputs, or None for input_size)."""
        self.bias, self.hidden_size = bool(bias), size(self, "hidden_size", hidden_size)
        self._how, self._parts = {"dtype": floating(self, device, dtype), "generator": generator}, parts
        self._names = tuple(name + suffix for suffix, _ in parts for name in PARTS[:4 if self.bias else 2])
        for name in self._names: self.register_parameter(name, None)
        self.input_size = None
        if input_size is None: self._wait(1, 2)
        else: self._settle(size(self, "input_size", input_size))

    def _plan(self, n):
        rows, hidden, plan = self.gates * self.hidden_size, self.hidden_size, {}
        draw = drawing(self._how, hidden)
        for suffix, inputs in self._parts:
            shapes = (rows, inputs or n), (rows, hidden), (rows,), (rows,)
            for name, shape in zip(PARTS[:4 if self.bias else 2], shapes, strict=False):
                plan[name + suffix] = shape, draw
        return plan

    def _size_of(self, x, *args, **kwargs):
        if np.ndim(x) not in self.ndims: self._refuse(np.shape(x))
        return np.shape(x)[-1]

    def _refuse(self, shape):
        raise ValueError(f"{type(self).__name__}: x must be {self.wanted}, got {shape}") from None

    def _size_in(self, state):
        weight = state.get(self._names[0])
        return weight.shape[1] if weight is not None and weight.ndim == 2 else None

    def _set_size(self, n):
        self.input_size, self._how = n, None

    def _flops(self, x, *args, y, **kwargs):
        """Each step multiplies by all weights."""
        shape = np.shape(x)
        return 2 * math.prod(shape[:-1]) * sum(w.size for w in self._weights() if w.ndim == 2)

    def _explained(self, error, x, states):
        """The error of the operator in the words of the layer: about x or the states if one of them does not fit."""
        name, shape, w = type(self).__name__, np.shape(x), self._weights()[0]
        if len(shape) not in self.ndims: self._refuse(shape)
        check_features(self, "x", x, self.input_size)
        wanted, dtype = self._state_shape(shape), asarray(x).dtype
        if dtype.kind == "f" and dtype != w.dtype:
            return ValueError(f"{name}: x is {dtype} and the parameters are {w.dtype}; convert x or the layer with "
                              f"astype")
        for h in states:
            if h is not None and np.shape(h) != wanted:
                return ValueError(f"{name}: a state in hx must be {wanted}, got {np.shape(h)}")
        return ValueError(name + error.args[0].removeprefix(self.operator.__name__))

    def _weights(self):
        found = self.__dict__
        return [found[name] for name in self._names]


class Layers(RecurrenceBase):
    """The base of LSTM, GRU and RNN."""

    def _set_up_layers(self, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
                       dtype, generator):
        name = type(self).__name__
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout must be a probability from 0 to 1, got {described(dropout)}")
        self.num_layers, self.batch_first = size(self, "num_layers", num_layers), bool(batch_first)
        self.dropout, self.bidirectional = float(dropout), bool(bidirectional)
        ends = ("", "_reverse") if bidirectional else ("",)
        hidden = size(self, "hidden_size", hidden_size)
        parts = tuple((f"_l{i}{end}", hidden * len(ends) if i else None) for i in range(self.num_layers)
                      for end in ends)
        self._set_up(input_size, hidden_size, bias, device, dtype, generator, parts)

    def _run(self, x, states, lengths, **options):
        """The result and the last states, of a batch or of one sequence."""
        if self._mode is not None and self.dropout and self.num_layers > 1: self._training()
        if (x.ndim if type(x) is Tensor else np.ndim(x)) != 2:
            try:
                return self.operator(x, self._weights(), *states, num_layers=self.num_layers, lengths=lengths,
                                     bidirectional=self.bidirectional, batch_first=self.batch_first,
                                     dropout=self.dropout, **options)
            except ValueError as e:
                raise self._explained(e, x, states) from None
        if lengths is not None:
            raise ValueError(f"{type(self).__name__}: lengths belong to a batch, but x has shape {np.shape(x)}")
        batch = [None if h is None else asarray(h)[:, None] for h in states]
        try:
            y, last = self.operator(asarray(x)[:, None], self._weights(), *batch, num_layers=self.num_layers,
                                    bidirectional=self.bidirectional, dropout=self.dropout, **options)
        except ValueError as e:
            raise self._explained(e, x, states) from None
        return y[:, 0], tuple(h[:, 0] for h in last) if type(last) is tuple else last[:, 0]

    def extra_repr(self) -> str:
        """input_size, hidden_size, and the arguments that differ from their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("nonlinearity", "tanh"), ("bias", True), ("batch_first", False),
                              ("dropout", 0.0), ("bidirectional", False)):
            value = getattr(self, name, default)
            if value != default: text += f", {name}={value!r}"
        return text


    def _state_shape(self, shape):
        batch = () if len(shape) == 2 else shape[0:1] if self.batch_first else shape[1:2]
        return self.num_layers * (1 + self.bidirectional), *batch, self.hidden_size


class LSTM(Layers):
    """Long short-term memory (Hochreiter and Schmidhuber 1997) over sequences: x is (steps, batch, input_size), or
    (batch, steps, input_size) with `batch_first`, or (steps, input_size). See cygrad.lstm.

    For layer k, and for its reverse direction with the suffix _reverse:
    weight_ih_lk        (4 hidden_size, inputs): input_size for layer 0, then hidden_size times the directions
    weight_hh_lk        (4 hidden_size, hidden_size)
    bias_ih_lk, bias_hh_lk   (4 hidden_size,), unless `bias` is False

    The gates are in the order i, f, g, o. All are from U(-k, k) with k = 1 / sqrt(hidden_size). `dropout` applies to
    the results of all layers but the last, in train mode. With input_size None the first call decides. `dtype` is
    float32 or float64 (None: the default one). The first values come from `generator` (None: the default one). Raises
    ValueError for a proj_size, which is not supported: multiply the result by a matrix with Linear."""

    gates, operator = 4, staticmethod(lstm)

    def __init__(self, input_size: int | None, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: Literal[0] = 0, device: Any = None, dtype: Any = None, *,
                 generator: Generator | None = None):
        if proj_size:
            raise ValueError(f"LSTM: proj_size is not supported, got {described(proj_size)}; apply a Linear to y")
        self._set_up_layers(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
                            dtype, generator)

    def forward(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None,
                lengths: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The result y for each step, and the last states (h, c), which are (layers times directions, batch,
        hidden_size). `hx` has the first states (h0, c0), zeros by default. `lengths` has the number of steps of each
        sequence of a padded batch, instead of PyTorch's packed sequences: y is zero after the end, and h and c are
        those of the last step."""
        return self._run(x, pair_of(self, hx), lengths)


class GRU(Layers):
    """Gated recurrent units (Cho et al. 2014) over sequences. The arguments and parameters are those of LSTM, with 3
    hidden_size rows in the order r, z, n. See cygrad.gru."""

    gates, operator = 3, staticmethod(gru)

    def __init__(self, input_size: int | None, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
                 dtype: Any = None, *, generator: Generator | None = None):
        self._set_up_layers(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
                            dtype, generator)

    def forward(self, x: Tensor, hx: Tensor | None = None, lengths: Any = None) -> tuple[Tensor, Tensor]:
        """The result y for each step, and the last state h. See LSTM."""
        return self._run(x, (hx,), lengths)


class RNN(Layers):
    """A plain recurrent network over sequences, h = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu. The arguments and
    parameters are those of LSTM, with hidden_size rows. See cygrad.rnn."""

    gates, operator = 1, staticmethod(rnn)

    def __init__(self, input_size: int | None, hidden_size: int, num_layers: int = 1,
                 nonlinearity: Literal["tanh", "relu"] = "tanh", bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, *,
                 generator: Generator | None = None):
        self.nonlinearity = nonlinearity_of(self, nonlinearity)
        self._set_up_layers(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
                            dtype, generator)

    def forward(self, x: Tensor, hx: Tensor | None = None, lengths: Any = None) -> tuple[Tensor, Tensor]:
        """The result y for each step, and the last state h. See LSTM."""
        return self._run(x, (hx,), lengths, nonlinearity=self.nonlinearity)


def pair_of(layer, hx):
    """The states (h, c), each of which may be None."""
    if hx is None: return None, None
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise TypeError(f"{type(layer).__name__}: hx must be a pair (h, c), got {described(hx)}")
    return hx


def nonlinearity_of(layer, name):
    if name not in ("tanh", "relu"):
        raise ValueError(f"{type(layer).__name__}: nonlinearity must be \"tanh\" or \"relu\", got {described(name)}")
    return name


# ---- cells -----------------------------------------------------------------------------------------------------------

class Cell(RecurrenceBase):
    """The base of LSTMCell, GRUCell and RNNCell."""

    weight_ih: Tensor
    weight_hh: Tensor

    ndims, wanted = (1, 2), "(batch, input_size) or (input_size,)"

    def _set_up_cell(self, input_size, hidden_size, bias, device, dtype, generator):
        self._set_up(input_size, hidden_size, bias, device, dtype, generator, (("", None),))

    def _step(self, x, states, **options):
        """The states after one step of a batch, or of one sample."""
        x = asarray(x)
        if x.ndim not in self.ndims: self._refuse(x.shape)
        at = (None,) * (3 - x.ndim)
        batch = [None if h is None else asarray(h)[at] for h in states]
        try:
            _, last = self.operator(x[at], self._weights(), *batch, **options)
        except ValueError as e:
            raise self._explained(e, x, states) from None
        back = (0,) * len(at)
        return tuple(h[back] for h in last) if type(last) is tuple else last[back]

    def extra_repr(self) -> str:
        """input_size, hidden_size, and the arguments that differ from their defaults."""
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return (f"{self.input_size}, {self.hidden_size}" + ", bias=False" * (not self.bias)
                + (f", nonlinearity={nonlinearity!r}" if nonlinearity != "tanh" else ""))


    def _state_shape(self, shape):
        return *shape[:-1], self.hidden_size


class LSTMCell(Cell):
    """One step of an LSTM: x is (batch, input_size) or (input_size,).

    weight_ih (4 hidden_size, input_size), weight_hh (4 hidden_size, hidden_size), bias_ih and bias_hh (4 hidden_size,),
    all from U(-k, k) with k = 1 / sqrt(hidden_size). The other arguments are those of LSTM, which is faster for whole
    sequences: it multiplies all steps by weight_ih at once."""

    gates, operator = 4, staticmethod(lstm)

    def __init__(self, input_size: int | None, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, generator: Generator | None = None):
        self._set_up_cell(input_size, hidden_size, bias, device, dtype, generator)

    def forward(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next states (h, c), each (batch, hidden_size). `hx` has the states before, zeros by default."""
        return self._step(x, pair_of(self, hx))


class GRUCell(Cell):
    """One step of a GRU: x is (batch, input_size) or (input_size,). The parameters are those of LSTMCell with 3
    hidden_size rows."""

    gates, operator = 3, staticmethod(gru)

    def __init__(self, input_size: int | None, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, generator: Generator | None = None):
        self._set_up_cell(input_size, hidden_size, bias, device, dtype, generator)

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, (batch, hidden_size). `hx` is the state before, zeros by default."""
        return self._step(x, (hx,))


class RNNCell(Cell):
    """One step of an RNN: x is (batch, input_size) or (input_size,). The parameters are those of LSTMCell with
    hidden_size rows."""

    operator = staticmethod(rnn)

    def __init__(self, input_size: int | None, hidden_size: int, bias: bool = True,
                 nonlinearity: Literal["tanh", "relu"] = "tanh", device: Any = None, dtype: Any = None, *,
                 generator: Generator | None = None):
        self.nonlinearity = nonlinearity_of(self, nonlinearity)
        self._set_up_cell(input_size, hidden_size, bias, device, dtype, generator)

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, (batch, hidden_size). `hx` is the state before, zeros by default."""
        return self._step(x, (hx,), nonlinearity=self.nonlinearity)
