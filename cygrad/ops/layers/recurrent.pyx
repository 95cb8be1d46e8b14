"""Recurrent layers over whole sequences: lstm, gru and rnn."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport (
    ADDING, BackwardCall, Call, Operator, Stage, add_stage, adds, output_bit, reads_temporary, saved, temporary,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.buffer cimport EXTERNAL
from cygrad.core.execute.generator cimport read_chance
from cygrad.core.execute.run cimport apply_list
from cygrad.kernels.layers cimport recurrent as kernels
from cygrad.kernels.array cimport BOOL, INT64, Array, Layout, is_floating, is_real, itemsize
from cygrad.kernels.linalg.blas cimport check_sizes
from cygrad.kernels.driver cimport gather
from cygrad.kernels.linalg.panels cimport Factors, multiply_shared
from cygrad.kernels.layers.recurrent cimport GRU, LSTM, RELU, TANH, Recurrence, gates_of, rows_of_weight, steps_at_once
from cygrad.kernels.reductions.reduce cimport sum_to

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError, described
from cygrad.core.interop.creation import zeros, zeros_beside
from cygrad.ops.shapes.join import concat, stack
from cygrad.ops.layers.random import dropout as drop
from cygrad.ops.layers.recurrent_formula import recurrence_gradients
from cygrad.ops.shapes.shape import expand_dims, swapaxes

cdef enum:                  # the inputs; the lengths come last
    X, W_IH, W_HH, B_IH, B_HH, H0, C0


cdef class Direction(Attributes):
    """The attributes of a layer in one direction: whether it begins at the last step, and whether there are lengths."""
    cdef readonly bint reverse
    cdef readonly bint has_lengths

    def __cinit__(self, bint reverse, bint has_lengths):
        self.reverse, self.has_lengths = reverse, has_lengths


# ---- memory ----------------------------------------------------------------------------------------------------------

cdef size_t capacity(const Array* x) noexcept nogil:
    """Bytes to pack x; 0 if it is dense or absent."""
    return 0 if x.data == NULL or x.layout.dense else (x.layout.size * itemsize(x.dtype) + 63) // 64 * 64


cdef const char* dense(const Array* x, char** workspace) noexcept nogil:
    """Row-major memory of x: its own, or a copy in the workspace, whose pointer is advanced. NULL if x is absent."""
    cdef char* copy = workspace[0]
    if x.data == NULL or x.layout.dense: return x.data
    gather(copy, x, 0, x.layout.size)
    workspace[0] += capacity(x)
    return copy


cdef Array columns(const char* data, int dtype, Py_ssize_t rows, Py_ssize_t width, Py_ssize_t start, Py_ssize_t n,
                   Layout* seen, Py_ssize_t* dims) noexcept nogil:
    """Columns start to start + n - 1 of a dense matrix. `dims` receives two sizes and two strides."""
    cdef Array a
    dims[0], dims[1], dims[2], dims[3] = rows, n, width, 1
    seen.refs, seen.ndim, seen.offset, seen.dense, seen.size = 1, 2, 0, n == width, rows * n
    seen.shape, seen.strides = dims, dims + 2
    a.data, a.layout, a.dtype = <char*>data + start * itemsize(dtype), seen, dtype
    return a


# ---- the operators ---------------------------------------------------------------------------------------------------

cdef class Recurrent(Operator):
    """y_t = h_t = cell(x_t, h_t-1)        dw_ih = dz' x, dw_hh = dz' h, dx = dz w_ih, with dz = g dh/dz

    The base of the layers. Outputs are y, the last h (of an LSTM and c), and, if recorded, the activated gates z (of an
    LSTM and the cells c), which are outputs because the formula needs their derivatives. For each step and hidden
    number, backward keeps 4 gates and the cell (lstm), 4 numbers (gru) or nothing (rnn), besides y, x for w_ih and the
    weights."""
    traits = "fused differentiable joint_formula"
    operands, no_gradient, outputs = "x w_ih w_hh b_ih b_hh h0 lengths?", "lengths", "y h"
    lanes = "recurring"
    cdef int kind
    cdef int gates_at       # the number of the output with the gates; 0: none

    cdef Recurrence sizes(self, const void* attributes, const Layout* x, int dtype, Py_ssize_t hidden) noexcept nogil:
        cdef Recurrence r
        memset(&r, 0, sizeof(Recurrence))
        r.kind, r.dtype, r.reverse, r.hidden = self.kind, dtype, (<Direction>attributes).reverse, hidden
        r.steps, r.batch, r.width = x.shape[0], x.shape[1], x.shape[2]
        return r

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Recurrence r = self.sizes(c.attributes, c.x[X].layout, c.x[X].dtype, c.x[W_HH].layout.shape[1])
        cdef Py_ssize_t shape[3]
        cdef int k, states = 2 if self.kind == LSTM else 1
        r.x = &c.x[X]
        check_sizes(r.steps * r.batch, gates_of(self.kind) * r.hidden, max(r.width, r.hidden))
        c.n_out = 1 + states + (0 if not c.wanted or not self.gates_at else states)
        shape[0], shape[1], shape[2] = r.steps, r.batch, r.hidden
        for k in range(c.n_out):
            c.y[k].dtype = r.dtype
            if k == 0 or k > self.gates_at and self.gates_at: c.y[k].layout = lay.dense(3, shape)
            elif k != self.gates_at: c.y[k].layout = lay.dense(2, shape + 1)
            else:
                shape[2] = gates_of(self.kind) * r.hidden
                c.y[k].layout = lay.dense(3, shape)
                shape[2] = r.hidden
        c.workspace_bytes = kernels.forward_bytes(&r, c.n_out > 1 + states) + 64
        for k in range(W_IH, H0): c.workspace_bytes += capacity(&c.x[k])
        c.work = r.steps * r.batch * (r.hidden + r.width) // 8 * gates_of(self.kind) * r.hidden

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Recurrence r = self.sizes(c.attributes, c.x[X].layout, c.x[X].dtype, c.x[W_HH].layout.shape[1])
        cdef char* free = c.workspace
        r.x, r.lengths = &c.x[X], lengths_in(c.attributes, &c.x[c.n_in - 1])
        if r.lengths != NULL: check_lengths(self, r.lengths, r.batch, r.steps, False)
        r.w_ih, r.w_hh = dense(&c.x[W_IH], &free), dense(&c.x[W_HH], &free)
        r.b_ih, r.b_hh = dense(&c.x[B_IH], &free), dense(&c.x[B_HH], &free)
        r.y, r.h, r.workspace = c.y[0].data, c.y[1].data, free
        gather(r.h, &c.x[H0], 0, c.y[1].layout.size)
        if self.kind == LSTM:
            r.c = c.y[2].data
            gather(r.c, &c.x[C0], 0, c.y[2].layout.size)
            if c.n_out == 5: r.cells = c.y[4].data
        if self.gates_at and c.n_out > self.gates_at: r.gates = c.y[self.gates_at].data
        return kernels.recur(&r)

    cdef tuple call_of(self, operands, arguments):
        """A row of several layers computes their inputs."""
        if operands[W_IH] != "w_ih": return None, None
        return range(len(operands)), Direction(False, operands[-1] == "lengths")

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef uint64_t lengths = <uint64_t>1 << (c.n_in - 1) if (<Direction>c.attributes).has_lengths else 0
        if not wanted: return 0
        return (self.for_gates() | lengths | (1 << X if wanted & 1 << W_IH else 0)
                | (1 << W_IH if wanted & 1 << X else 0) | (output_bit(0) | 1 << H0 if wanted & 1 << W_HH else 0))

    cdef uint64_t for_gates(self) noexcept nogil:
        """What the gradient of the gates needs, without the lengths."""
        if self.kind == LSTM: return 1 << W_HH | 1 << C0 | output_bit(3) | output_bit(4)
        if self.kind == GRU: return 1 << W_HH | 1 << H0 | output_bit(0) | output_bit(2)
        return 1 << W_HH | output_bit(0)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """The first stage only places dh0 and dc0. The second computes the gradients of the gates, which may overwrite
        the gates, and fills dh0 and dc0. Then the weights, which can be added directly to .grad, then the rest."""
        cdef uint64_t lengths = <uint64_t>1 << (b.n_in - 1) if (<Direction>b.attributes).has_lengths else 0
        cdef Array w = saved(b, W_HH), first
        cdef Recurrence r = self.sizes(b.attributes, b.y, b.dtype, b.y.shape[2])
        cdef Py_ssize_t rows = gates_of(self.kind) * r.batch * r.hidden * itemsize(b.dtype) + 64
        cdef bint has_c0 = self.kind == LSTM and b.want[C0]
        cdef Stage* s
        if b.want[H0] or has_c0: add_stage(b, 1 << H0 | (1 << C0 if self.kind == LSTM else 0))
        s = add_stage(b, temporary(0))
        s.saved = self.for_gates() | lengths
        s.like = saved(b, OWN | self.gates_at).layout if self.gates_at else b.y
        s.donated_saved = output_bit(self.gates_at) if self.gates_at else 0
        s.workspace_bytes = kernels.backward_bytes(&r) + capacity(&w) + 64
        for k in range(b.n_out): s.workspace_bytes += capacity(&b.g[k])
        if self.kind == LSTM or self.kind == GRU:
            first = saved(b, C0 if self.kind == LSTM else H0)
            s.workspace_bytes += capacity(&first)
        if b.want[W_IH] or b.want[W_HH]:
            s = add_stage(b, 1 << W_IH | 1 << W_HH)
            s.saved = lengths | (1 << X if b.want[W_IH] else 0) | (output_bit(0) | 1 << H0 if b.want[W_HH] else 0)
            s.gradients, s.writes, s.workspace_bytes = reads_temporary(0), ADDING, rows
            if b.want[W_HH]:
                first = saved(b, H0)
                s.workspace_bytes += capacity(&first)
            if b.want[W_IH]:
                first = saved(b, X)
                r.width = first.layout.shape[2]
                if not first.layout.dense:
                    s.workspace_bytes += steps_at_once(&r) * r.batch * r.width * itemsize(b.dtype)
        if b.want[X] or b.want[B_IH] or b.want[B_HH]:
            s = add_stage(b, 1 << X | 1 << B_IH | 1 << B_HH)
            s.saved, s.gradients = 1 << W_IH if b.want[X] else 0, reads_temporary(0)
            if b.want[X]:
                w = saved(b, W_IH)
                s.workspace_bytes = capacity(&w)
        b.work = max(b.work, r.steps * r.batch * (r.hidden + r.width) // 8 * gates_of(self.kind) * r.hidden)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef uint64_t computes = b.stages[stage].computes
        cdef Recurrence r = self.sizes(b.attributes, b.y, b.dtype, b.y.shape[2])
        cdef Array lengths
        if computes & 1 << H0: return 0
        if (<Direction>b.attributes).has_lengths and not computes & 1:
            lengths = saved(b, b.n_in - 1)
            r.lengths = <const int64_t*>lengths.data
            check_lengths(self, r.lengths, r.batch, r.steps, True)
        if computes == temporary(0): return self.gate_gradients(b, &r)
        r.dgates = b.temporaries[0].data
        return weight_gradients(b, &r) if computes & 1 << W_IH else other_gradients(b, &r)

    cdef int gate_gradients(self, BackwardCall* b, Recurrence* r) except -1 nogil:
        cdef char* free = b.workspace
        cdef Array a = saved(b, W_HH)
        r.w_hh, r.gy, r.gh = dense(&a, &free), dense(&b.g[0], &free), dense(&b.g[1], &free)
        if self.kind != LSTM: r.y = saved(b, OWN).data
        else:
            r.gc, r.cells = dense(&b.g[2], &free), saved(b, OWN | 4).data
            if b.n_out == 5: r.gcells = dense(&b.g[4], &free)
            a = saved(b, C0)
            r.c0 = dense(&a, &free)
        if self.kind == GRU:
            a = saved(b, H0)
            r.h0 = dense(&a, &free)
        if self.gates_at:
            r.gates = saved(b, OWN | self.gates_at).data
            if b.n_out > self.gates_at: r.ggates = dense(&b.g[self.gates_at], &free)
        if b.want[H0]: r.dh0 = b.dx[H0].data
        if self.kind == LSTM and b.want[C0]: r.dc0 = b.dx[C0].data
        r.dgates, r.workspace = b.temporaries[0].data, free
        return kernels.recur_back(r)

    cdef object formula(self, c, int i, g):
        return recurrence_gradients(self.kind, self.gates_at, c, g)


cdef const int64_t* lengths_in(const void* attributes, const Array* last) noexcept nogil:
    return <const int64_t*>last.data if (<Direction>attributes).has_lengths else NULL


cdef int check_lengths(Operator op, const int64_t* lengths, Py_ssize_t n, Py_ssize_t steps,
                       bint kept) except -1 nogil:
    """Raise an error for a length that x does not have: ValueError in forward, InplaceError in backward (kept). A
    replay may read others than the function saw, and NumPy may have changed those that were kept."""
    cdef int64_t length
    for i in range(n):
        length = lengths[i]
        if not 1 <= length <= steps:
            with gil:
                if kept:
                    raise InplaceError(f"{op.name}: the length {length} is not one of 1 to the {steps} steps of x; it "
                                       f"was modified since forward; pass a copy()")
                raise ValueError(f"{op.name}: lengths must be from 1 to the {steps} steps of x, got {length}")


cdef int weight_gradients(BackwardCall* b, Recurrence* r) except -1 nogil:
    """dw_ih = dz' x and dw_hh = dz' h, where h is the state before: y of the step before, or h0."""
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, rows = rows_of_weight(r.kind) * n, size = itemsize(r.dtype)
    cdef Py_ssize_t start = 0, count, at_once, step = r.batch * k * size
    cdef char* free = b.workspace
    cdef const char* first = b.workspace
    cdef const char* states
    cdef const char* dz = r.dgates
    cdef bint further = adds(b, W_IH)
    cdef Factors p
    cdef Array x
    if b.want[W_IH]:
        x = saved(b, X)
        r.width = x.layout.shape[2]
        at_once = r.steps if x.layout.dense else steps_at_once(r)
        while True:
            count = min(at_once, r.steps - start)
            if x.layout.dense: states = x.data
            else:
                gather(free, &x, start * r.batch * r.width, count * r.batch * r.width)
                states = free
            p = Factors(r.dtype, r.width, count * r.batch, dz + start * step, 1, k, states, r.width, 1, NULL,
                        b.dx[W_IH].data, r.width, further, 1, NULL, 0)
            multiply_shared(&p, rows)
            start += count
            further = True
            if start >= r.steps: break
    if not b.want[W_HH]: return 0
    kernels.first_rows(r, free)
    free += (step + 63) // 64 * 64
    x = saved(b, H0)
    states = dense(&x, &free)
    state_product(r, r.batch, first, states, adds(b, W_HH), b.dx[W_HH].data)
    states = saved(b, OWN).data
    if r.reverse: states += r.batch * n * size
    else: dz += step
    state_product(r, (r.steps - 1) * r.batch, dz, states, True, b.dx[W_HH].data)


cdef void state_product(const Recurrence* r, Py_ssize_t count, const char* dz, const char* states, bint further,
                        char* dw) noexcept nogil:
    """dw = dz' states, + dw if `further`. The last part of a GRU's weight has its own gradient, the last part of dz."""
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, m = 2 * n if r.kind == GRU else k, size = itemsize(r.dtype)
    cdef Factors p = Factors(r.dtype, n, count, dz, 1, k, states, n, 1, NULL, dw, n, further, 1, NULL, 0)
    multiply_shared(&p, m)
    if r.kind != GRU: return
    p.a, p.c = dz + 3 * n * size, dw + m * n * size
    multiply_shared(&p, n)


cdef int other_gradients(BackwardCall* b, Recurrence* r) except -1 nogil:
    """dx = dz w_ih, and the sums of dz for the biases."""
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, rows = rows_of_weight(r.kind) * n, count = r.steps * r.batch
    cdef Layout seen[2]
    cdef Py_ssize_t dims[8]
    cdef Array a, out
    cdef char* free = b.workspace
    cdef Factors p
    if b.want[X]:
        a = saved(b, W_IH)
        r.width = a.layout.shape[1]
        p = Factors(r.dtype, r.width, rows, r.dgates, k, 1, dense(&a, &free), r.width, 1, NULL, b.dx[X].data, r.width,
                    0, 1, NULL, 0)
        multiply_shared(&p, count)
    for i in range(B_IH, H0):
        if not b.want[i]: continue
        if r.kind != GRU or i == B_IH:
            a = columns(r.dgates, r.dtype, count, k, 0, rows, &seen[0], dims)
            sum_to(&a, &b.dx[i])
            continue
        out = b.dx[i]
        out.layout = &seen[1]
        seen[1].refs, seen[1].ndim, seen[1].offset, seen[1].dense = 1, 1, 0, True
        seen[1].shape, seen[1].strides = dims + 4, dims + 6
        dims[6] = 1
        seen[1].size = dims[4] = 2 * n
        a = columns(r.dgates, r.dtype, count, k, 0, 2 * n, &seen[0], dims)
        sum_to(&a, &out)
        seen[1].size = dims[4] = n
        out.data += 2 * n * itemsize(r.dtype)
        a = columns(r.dgates, r.dtype, count, k, 3 * n, n, &seen[0], dims)
        sum_to(&a, &out)


# ---- the layers ------------------------------------------------------------------------------------------------------

cdef class Lstm(Recurrent):
    """y = h_t = o tanh c_t, c_t = f c_t-1 + i g, (i, f, g, o) = a(z), z = x w_ih' + h w_hh' + b
    dz = (di i (1 - i), df f (1 - f), dg (1 - g^2), do o (1 - o))
    di = dc g, df = dc c_t-1, dg = dc i, do = dh tanh c"""
    row, functions = "lstm_layer", {"lstm": "x []weights h0? c0? lengths?"}
    operands, outputs = "x w_ih w_hh b_ih b_hh h0 c0 lengths?", "y h c"

    def __cinit__(self):
        self.kind, self.gates_at = LSTM, 3


cdef class Gru(Recurrent):
    """y = h_t = (1 - u) n + u h_t-1, n = tanh(z_n + r s_n), (r, u) = sigmoid(z + s), z = x w_ih' + b_ih,
    s = h_t-1 w_hh' + b_hh
    dn = dh (1 - u) (1 - n^2), du = dh (h_t-1 - n) u (1 - u), dr = dn s_n r (1 - r), ds_n = dn r"""
    row, functions = "gru_layer", {"gru": "x []weights h0? lengths?"}

    def __cinit__(self):
        self.kind, self.gates_at = GRU, 2


cdef class Rnn(Recurrent):
    """y = h_t = tanh(x w_ih' + h w_hh' + b)        dz = dh (1 - y^2)"""
    row, functions = "rnn_layer", {"rnn": "x []weights h0? lengths?"}

    def __cinit__(self):
        self.kind = TANH


cdef class RnnRelu(Recurrent):
    """y = h_t = relu(x w_ih' + h w_hh' + b)        dz = dh (y > 0)"""
    row, functions = "rnn_relu_layer", {"rnn_relu": "x []weights h0? lengths?"}

    def __cinit__(self):
        self.kind = RELU


cdef Operator LSTM_OP = Lstm(), GRU_OP = Gru(), RNN_OP = Rnn(), RELU_OP = RnnRelu()
OPERATORS = {o.name: o for o in (LSTM_OP, GRU_OP, RNN_OP, RELU_OP)}


cdef tuple run_layers(Operator op, str name, x, weights, h0, c0, num_layers, bidirectional, batch_first, lengths,
                      dropout, proj_size):
    """The result, the last states and the last cells (or None) of all layers and directions."""
    cdef Tensor t = ensure_tensor(x), sequences = None
    cdef bint lstm = op is LSTM_OP
    cdef int directions = 2 if bidirectional else 1, factor = rows_of_weight((<Recurrent>op).kind), layer, d
    if proj_size:
        raise ValueError(f"{name}: proj_size is not supported; multiply the result by a matrix with linear()")
    if t.layout.ndim != 3 or not is_real(t.dtype) or t.layout.shape[1 if batch_first else 0] == 0:
        shape = "(batch, steps, width)" if batch_first else "(steps, batch, width)"
        raise ValueError(f"{name}: x is {t.shape} of {DTYPES[t.dtype]}; wanted floats of shape {shape} with at least "
                         f"one step")
    read_chance(name, "dropout", dropout)
    layers = read_weights(name, weights, num_layers, directions, factor, t)
    if batch_first: t = swapaxes(t, 0, 1)
    if lengths is not None: sequences = read_lengths(name, lengths, t.shape[0], t.shape[1])
    hidden = layers[0][1].shape[1]
    wanted = (num_layers * directions, t.shape[1], hidden)
    firsts = [read_states(name, "h0", h0, wanted, t), read_states(name, "c0", c0, wanted, t) if lstm else None]
    states, cells = [], []
    for layer in range(num_layers):
        if layer and dropout: t = drop(t, dropout)
        results = []
        for d in range(directions):
            k = layer * directions + d
            inputs = [t, *layers[k], firsts[0][k]]
            if lstm: inputs.append(firsts[1][k])
            if sequences is not None: inputs.append(sequences)
            out = apply_list(op, inputs, Direction(d, sequences is not None))
            results.append(out[0])
            states.append(out[1])
            if lstm: cells.append(out[2])
        t = results[0] if directions == 1 else concat(results, 2)
    last = expand_dims(states[0], 0) if len(states) == 1 else stack(states)
    last_cells = None if not lstm else expand_dims(cells[0], 0) if len(cells) == 1 else stack(cells)
    return swapaxes(t, 0, 1) if batch_first else t, last, last_cells


cdef list read_weights(str name, weights, num_layers, int directions, int factor, Tensor x):
    """For each layer and direction w_ih, w_hh, b_ih and b_hh, with zeros for biases that are not given."""
    if isinstance(weights, (str, bytes, dict)) or not hasattr(weights, "__iter__"):
        raise TypeError(f"{name}: weights must be a sequence of tensors, got {described(weights)}")
    cdef list given = [ensure_tensor(w) for w in weights], found = []
    if isinstance(num_layers, bool) or not isinstance(num_layers, int) or num_layers < 1:
        raise ValueError(f"{name}: num_layers must be an integer of at least 1, got {described(num_layers)}")
    parts = num_layers * directions
    if len(given) not in (2 * parts, 4 * parts):
        raise ValueError(f"{name}: got {len(given)} weights; wanted w_ih, w_hh, b_ih and b_hh, or w_ih and w_hh, for "
                         f"each of {num_layers} layers and {directions} directions: {4 * parts} or {2 * parts}")
    each = len(given) // parts
    width, hidden = x.shape[2], given[1].shape[-1] if given[1].ndim == 2 else 0
    for k in range(parts):
        one = given[each * k:each * (k + 1)]
        n_in = width if k < directions else hidden * directions
        shapes = [(factor * hidden, n_in), (factor * hidden, hidden), (factor * hidden,), (factor * hidden,)]
        for w, label, shape in zip(one, ("w_ih", "w_hh", "b_ih", "b_hh"), shapes):
            if w.shape != shape or (<Tensor>w).dtype != x.dtype:
                raise ValueError(f"{name}: {label} of layer {k // directions} is {w.shape} of {w.dtype}; wanted "
                                 f"{shape} of {DTYPES[x.dtype]}")
        if each == 2: one += [zeros(shapes[2], dtype=DTYPES[x.dtype])] * 2
        found.append(one)
    return found


cdef Tensor read_states(str name, str which, given, tuple shape, Tensor x):
    """The first states (layers x directions, batch, hidden), or (batch, hidden), zeros if they are not given."""
    if given is None: return zeros_beside(x, shape, <int>len(shape) - 2, 1)
    cdef Tensor t = ensure_tensor(given)
    if t.shape != shape or t.dtype != x.dtype:
        raise ValueError(f"{name}: {which} is {t.shape} of {DTYPES[t.dtype]}; wanted (layers times directions, batch, "
                         f"hidden), here {shape}, of {DTYPES[x.dtype]}")
    return t


cdef Tensor read_lengths(str name, lengths, Py_ssize_t steps, Py_ssize_t batch):
    cdef Tensor t = ensure_tensor(lengths)
    if is_floating(t.dtype) or t.dtype == BOOL or t.layout.ndim != 1 or t.layout.shape[0] != batch:
        raise ValueError(f"{name}: lengths is {t.shape} of {DTYPES[t.dtype]}; wanted {batch} integers, one for each "
                         f"sequence")
    numbers = t.tolist()
    if any([not 1 <= n <= steps for n in numbers]):
        raise ValueError(f"{name}: lengths must be from 1 to the {steps} steps of x, got {min(numbers)} to "
                         f"{max(numbers)}")
    if t.dtype != INT64: t = t.astype(DTYPES[INT64])
    return t.copy() if not t.layout.dense or t.buffer.flags & EXTERNAL else t


def lstm(x: Data, weights: Sequence[Data], h0: Data | None = None, c0: Data | None = None, *, num_layers: int = 1,
         bidirectional: bool = False, batch_first: bool = False, lengths: Data | None = None, dropout: float = 0.0,
         proj_size: int = 0) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Long short-term memory over whole sequences: returns y and the pair of last states (h, c), as PyTorch's nn.LSTM.

    x is (steps, batch, width), or (batch, steps, width) with `batch_first`, as is y. `weights` lists, for each layer
    and within it for each direction, w_ih (4 hidden, inputs), w_hh (4 hidden, hidden) and, with biases, b_ih and b_hh
    (4 hidden,), with the gates in the order i, f, g, o: nn.LSTM's parameters in their order. y has the results of both
    directions side by side. h0, c0, h and c are (num_layers times directions, batch, hidden); h0 and c0 are zeros by
    default.

    `lengths` has the number of steps of each sequence, in any order, instead of a packed sequence: y is zero after the
    end, the last states are those of the last step, and the reverse direction begins there. `dropout` applies between
    layers in train mode.

    Backward keeps, for each step and hidden number, 4 activated gates, the cell and y, and x for the gradient of w_ih.
    Raises ValueError for shapes or dtypes that do not fit, a `dropout` that is not from 0 to 1, and a `proj_size`."""
    y, h, c = run_layers(LSTM_OP, "lstm", x, weights, h0, c0, num_layers, bidirectional, batch_first, lengths, dropout,
                         proj_size)
    return y, (h, c)


def gru(x: Data, weights: Sequence[Data], h0: Data | None = None, *, num_layers: int = 1, bidirectional: bool = False,
        batch_first: bool = False, lengths: Data | None = None, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """Gated recurrent units over whole sequences: returns y and the last states h, as PyTorch's nn.GRU. The arguments
    are those of lstm; the weights have 3 hidden rows, in the order r, u (PyTorch's z), n. The reset gate multiplies the
    product of the state. Backward keeps 4 numbers and y for each step and hidden number, and x for w_ih."""
    y, h, _ = run_layers(GRU_OP, "gru", x, weights, h0, None, num_layers, bidirectional, batch_first, lengths, dropout,
                         0)
    return y, h


def rnn(x: Data, weights: Sequence[Data], h0: Data | None = None, *, num_layers: int = 1, bidirectional: bool = False,
        batch_first: bool = False, lengths: Data | None = None, dropout: float = 0.0,
        nonlinearity: Literal["tanh", "relu"] = "tanh") -> tuple[Tensor, Tensor]:
    """A plain recurrent network over whole sequences: returns y and the last states h, as PyTorch's nn.RNN. The
    arguments are those of lstm; the weights have `hidden` rows. Backward keeps y, and x for w_ih."""
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"rnn: nonlinearity must be 'tanh' or 'relu', got {described(nonlinearity)}")
    y, h, _ = run_layers(RNN_OP if nonlinearity == "tanh" else RELU_OP, "rnn", x, weights, h0, None, num_layers,
                         bidirectional, batch_first, lengths, dropout, 0)
    return y, h


def rnn_relu(x: Data, weights: Sequence[Data], h0: Data | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    """rnn with nonlinearity="relu"."""
    return rnn(x, weights, h0, nonlinearity="relu", **options)


# ---- one layer in one direction --------------------------------------------------------------------------------------

cdef object run_layer(Operator op, str name, x, tuple weights, h0, c0, lengths, bint reverse):
    """The results of the operator: y, the last states and, if recorded, what the formula needs."""
    cdef Tensor t = ensure_tensor(x)
    cdef bint lstm = op is LSTM_OP
    if t.layout.ndim != 3 or not is_real(t.dtype) or t.layout.shape[0] == 0:
        raise ValueError(f"{name}: x is {t.shape} of {DTYPES[t.dtype]}; wanted floats of shape (steps, batch, width) "
                         f"with at least one step")
    inputs = [t, *read_weights(name, weights, 1, 1, rows_of_weight((<Recurrent>op).kind), t)[0]]
    wanted = (t.shape[1], inputs[1].shape[0] // rows_of_weight((<Recurrent>op).kind))
    inputs.append(read_states(name, "h0", h0, wanted, t))
    if lstm: inputs.append(read_states(name, "c0", c0, wanted, t))
    if lengths is not None: inputs.append(read_lengths(name, lengths, t.shape[0], t.shape[1]))
    return apply_list(op, inputs, Direction(reverse, lengths is not None))


def lstm_layer(x: Data, w_ih: Data, w_hh: Data, b_ih: Data, b_hh: Data, h0: Data, c0: Data,
               lengths: Data | None = None, reverse: bool = False) -> tuple[Tensor, ...]:
    """A layer of lstm() in one direction, with first states (batch, hidden): y and the last h and c."""
    return run_layer(LSTM_OP, "lstm_layer", x, (w_ih, w_hh, b_ih, b_hh), h0, c0, lengths, reverse)


def gru_layer(x: Data, w_ih: Data, w_hh: Data, b_ih: Data, b_hh: Data, h0: Data, lengths: Data | None = None,
              reverse: bool = False) -> tuple[Tensor, ...]:
    """A layer of gru() in one direction, with first states (batch, hidden): y and the last h."""
    return run_layer(GRU_OP, "gru_layer", x, (w_ih, w_hh, b_ih, b_hh), h0, None, lengths, reverse)


def rnn_layer(x: Data, w_ih: Data, w_hh: Data, b_ih: Data, b_hh: Data, h0: Data, lengths: Data | None = None,
              reverse: bool = False) -> tuple[Tensor, ...]:
    """A layer of rnn() in one direction, with first states (batch, hidden): y and the last h."""
    return run_layer(RNN_OP, "rnn_layer", x, (w_ih, w_hh, b_ih, b_hh), h0, None, lengths, reverse)


def rnn_relu_layer(x: Data, w_ih: Data, w_hh: Data, b_ih: Data, b_hh: Data, h0: Data, lengths: Data | None = None,
                   reverse: bool = False) -> tuple[Tensor, ...]:
    """A layer of rnn_relu() in one direction, with first states (batch, hidden): y and the last h."""
    return run_layer(RELU_OP, "rnn_relu_layer", x, (w_ih, w_hh, b_ih, b_hh), h0, None, lengths, reverse)
