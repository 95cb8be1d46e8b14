"""The gradients of recurrent layers over tensors, step by step: what create_graph records for lstm, gru and rnn."""

from cygrad.kernels.layers.recurrent cimport GRU, LSTM, RELU, TANH

from cygrad.core.interop.creation import zeros
from cygrad.ops.elementwise.compare import equal, greater, where
from cygrad.ops.elementwise.elementwise import square
from cygrad.ops.elementwise.functions import tanh
from cygrad.ops.shapes.join import concat, stack
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import expand_dims, reshape, transpose

cdef enum:                  # the inputs, as in ops/layers/recurrent
    X, W_IH, W_HH, B_IH, B_HH, H0, C0


cdef class States:
    """The state of each sequence before a step, in the formula."""
    cdef object lengths
    cdef Py_ssize_t steps
    cdef bint reverse

    cdef object before(self, states, first, t):
        if not self.reverse: return states[t - 1] if t else first
        if t == self.steps - 1: return first
        if self.lengths is None: return states[t + 1]
        return where(equal(self.lengths, t + 1), first, states[t + 1])


cdef object total(a, b):
    return b if a is None else a if b is None else a + b


cdef object picked(g, t):
    return None if g is None else g[t]


cdef tuple gate_formula(int kind, z, gz, state, before, dh, dc):
    """The gradients of one step: of the gates before activation, of the state before apart from the product, and of the
    cell before. `state` is the cell of an LSTM, else the result."""
    if kind == TANH: return dh * (1 - square(state)), None, None
    if kind == RELU: return where(greater(state.detach(), 0.0), dh, 0.0), None, None
    n = state.shape[-1]
    a, b, v, d = z[:, :n], z[:, n:2 * n], z[:, 2 * n:3 * n], z[:, 3 * n:]
    if kind == LSTM:                                # i, f, g, o
        t = tanh(state)
        dc = dc + dh * d * (1 - square(t))
        parts = [dc * v, dc * before, dc * a, dh * t]
    else: parts = [None, dh * (before - v), dh * (1 - b), None]     # r, u, n, s
    if gz is not None: parts = [total(p, gz[:, k * n:(k + 1) * n]) for k, p in enumerate(parts)]
    if kind == LSTM:
        da, db, dv, dd = parts
        return concat([da * a * (1 - a), db * b * (1 - b), dv * (1 - square(v)), dd * d * (1 - d)], 1), None, dc * b
    dv = parts[2] * (1 - square(v))
    da, dd = total(parts[0], dv * d), total(parts[3], dv * a)
    return concat([da * a * (1 - a), parts[1] * b * (1 - b), dv, dd], 1), dh * b, None


def recurrence_gradients(int kind, int gates_at, c, g):
    """The gradients of all inputs of a layer, over tensors."""
    cdef States s = States()
    cdef bint lstm = kind == LSTM
    w_hh, a = c.input(W_HH), c.attributes
    n_in = 6 + lstm
    z = c.output(gates_at) if gates_at else None
    states = c.output(4 if lstm else 0)
    first = c.input(C0) if lstm else c.input(H0) if kind == GRU else None
    s.steps, s.reverse = states.shape[0], a.reverse
    s.lengths = expand_dims(c.input(n_in), 1) if a.has_lengths else None
    steps, batch, n = states.shape
    zero = zeros((batch, n), dtype=states.dtype)
    gz, gcells = g[gates_at] if gates_at and len(g) > gates_at else None, g[4] if len(g) == 5 else None
    dh, dc = zero if g[1] is None else g[1], zero if not lstm or g[2] is None else g[2]
    found = [None] * steps
    for t in range(steps) if s.reverse else range(steps - 1, -1, -1):
        active = None if s.lengths is None else greater(s.lengths, t)
        now = total(dh, picked(g[0], t))
        dz, direct, dc_before = gate_formula(
            kind, picked(z, t), picked(gz, t), states[t], None if first is None else s.before(states, first, t), now,
            total(dc, picked(gcells, t)))
        if active is not None: dz = where(active, dz, 0.0)
        found[t] = dz
        dh_before = total(matmul(concat([dz[:, :2 * n], dz[:, 3 * n:]], 1) if kind == GRU else dz, w_hh), direct)
        dh = dh_before if active is None else where(active, dh_before, dh)
        if lstm: dc = dc_before if active is None else where(active, dc_before, dc)
    dz = reshape(stack(found), (steps * batch, -1 if steps * batch else (n if not gates_at else 4 * n)))
    for_x = dz[:, :3 * n] if kind == GRU else dz
    for_h = concat([dz[:, :2 * n], dz[:, 3 * n:]], 1) if kind == GRU else dz
    dx = reshape(matmul(for_x, c.input(W_IH)), c.shape(X)) if c.wants(X) else None
    dw_ih = dw_hh = None
    if c.wants(W_IH):
        x = c.input(X)
        dw_ih = matmul(transpose(for_x), reshape(x, (steps * batch, x.shape[2])))
    if c.wants(W_HH):
        y, h0 = c.output(0), c.input(H0)
        before = stack([s.before(y, h0, t) for t in range(steps)])
        dw_hh = matmul(transpose(for_h), reshape(before, (steps * batch, n)))
    result = [dx, dw_ih, dw_hh, sum(for_x, 0) if c.wants(B_IH) else None, sum(for_h, 0) if c.wants(B_HH) else None, dh]
    return (*result, *([dc] if lstm else []), *([None] if a.has_lengths else []))
