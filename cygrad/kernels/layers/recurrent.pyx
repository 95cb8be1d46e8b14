"""Recurrent layers over whole sequences: LSTM (Hochreiter and Schmidhuber 1997, Gers et al. 2000), GRU (Cho et al.
2014, with the reset gate after the product, as in cuDNN) and plain cells.

The products of x with its weights are made for many steps at a time, into the memory of the gates. A step adds the
product of the state and activates the gates in place. The sequences of a batch are independent, so each thread takes
some of them through all steps, without waiting for the others.

A sequence that has ended, or in reverse not begun, keeps its state; its outputs are zeros."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.linalg.blas cimport begin_products, end_products, product
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.driver cimport gather
from cygrad.kernels.mathematics cimport logistic, tanh
from cygrad.kernels.linalg.panels cimport Factors, multiply_rows, multiply_shared, pack, packed_bytes
from cygrad.kernels.threads cimport parallel_for, range_t, threads_for

cdef enum:
    CHUNK = 1 << 20         # bytes of workspace for products of x, and for x if it is packed


cdef int gates_of(int kind) noexcept nogil:
    """Numbers that a step keeps for each hidden number: the activated gates; of a GRU also the product of the state for
    its new value."""
    return 4 if kind == LSTM or kind == GRU else 1


cdef int rows_of_weight(int kind) noexcept nogil:
    """The rows of the weights for each hidden number."""
    return 4 if kind == LSTM else 3 if kind == GRU else 1


cdef Py_ssize_t steps_at_once(const Recurrence* r) noexcept nogil:
    """Steps whose x or gates fit into CHUNK, at least one."""
    cdef Py_ssize_t row = max(r.width, gates_of(r.kind) * r.hidden) * r.batch * itemsize(r.dtype)
    return max(<Py_ssize_t>1, min(r.steps, <Py_ssize_t>CHUNK // max(<Py_ssize_t>1, row)))


cdef size_t forward_bytes(const Recurrence* r, bint kept) noexcept nogil:
    """Bytes of workspace: w_hh packed, the sums of the biases, packed steps of x, the gates if they are not kept, and
    the product of the state of a GRU."""
    cdef Py_ssize_t row = rows_of_weight(r.kind) * r.hidden, steps = steps_at_once(r)
    cdef size_t packed = packed_bytes(r.dtype, row, r.hidden) if repeats(r) else 0
    if not r.x.layout.dense: row += steps * r.batch * r.width
    if not kept: row += steps * r.batch * gates_of(r.kind) * r.hidden
    if r.kind == GRU: row += r.batch * 3 * r.hidden
    return packed + row * itemsize(r.dtype)


cdef size_t backward_bytes(const Recurrence* r) noexcept nogil:
    """Bytes of workspace: w_hh packed, the gradients of both states, and of the state before."""
    cdef size_t nbytes = 3 * r.batch * r.hidden * itemsize(r.dtype)
    if not repeats(r): return nbytes
    if r.kind != GRU: return nbytes + packed_bytes(r.dtype, r.hidden, rows_of_weight(r.kind) * r.hidden)
    return nbytes + packed_bytes(r.dtype, r.hidden, 2 * r.hidden) + packed_bytes(r.dtype, r.hidden, r.hidden)


cdef inline bint repeats(const Recurrence* r) noexcept nogil:
    """Whether w_hh is packed: only if several steps share the cost."""
    return r.steps > 1


cdef inline bint is_active(const Recurrence* r, Py_ssize_t t, Py_ssize_t b) noexcept nogil:
    return r.lengths == NULL or t < r.lengths[b]


cdef inline bint is_first(const Recurrence* r, Py_ssize_t t, Py_ssize_t b) noexcept nogil:
    """Whether step t is the first of sequence b in the direction of the layer."""
    return t >= last_step(r, b) if r.reverse else t == 0


cdef inline Py_ssize_t last_step(const Recurrence* r, Py_ssize_t b) noexcept nogil:
    """The last step of sequence b, which is one of the steps even if another thread writes the lengths meanwhile."""
    cdef int64_t n = r.steps if r.lengths == NULL else r.lengths[b]
    return (1 if n < 1 else r.steps if n > r.steps else n) - 1


# ---- forward ---------------------------------------------------------------------------------------------------------

cdef void lstm_step(real* z, const real* bias, real* c, real* cells, real* h, real* y, Py_ssize_t n) noexcept nogil:
    """z = i, f, g, o: c = f c + i g, h = o tanh(c)"""
    cdef Py_ssize_t j
    for j in range(2 * n): z[j] = logistic(z[j] + bias[j])
    for j in range(2 * n, 3 * n): z[j] = tanh(z[j] + bias[j])
    for j in range(3 * n, 4 * n): z[j] = logistic(z[j] + bias[j])
    for j in range(n): c[j] = z[n + j] * c[j] + z[j] * z[2 * n + j]
    for j in range(n): h[j] = z[3 * n + j] * tanh(c[j])
    memcpy(y, h, n * sizeof(real))
    if cells != NULL: memcpy(cells, c, n * sizeof(real))


cdef void gru_step(real* z, const real* s, const real* bias, const real* b_hh, real* h, real* y,
                   Py_ssize_t n) noexcept nogil:
    """z = r, u, n, s_n: n = tanh(x_n + r s_n), h = (1 - u) n + u h, where s is the product of the state"""
    cdef Py_ssize_t j
    for j in range(2 * n): z[j] = logistic(z[j] + s[j] + bias[j])
    for j in range(n): z[3 * n + j] = s[2 * n + j] + b_hh[2 * n + j]
    for j in range(n): z[2 * n + j] = tanh(z[2 * n + j] + bias[2 * n + j] + z[j] * z[3 * n + j])
    for j in range(n): h[j] = z[2 * n + j] + z[n + j] * (h[j] - z[2 * n + j])
    memcpy(y, h, n * sizeof(real))


cdef void plain_step(int kind, const real* z, const real* bias, real* h, real* y, Py_ssize_t n) noexcept nogil:
    """h = tanh(z) or relu(z)"""
    if kind == TANH:
        for j in range(n): h[j] = tanh(z[j] + bias[j])
    else:
        for j in range(n): h[j] = 0 if z[j] + bias[j] <= 0 else z[j] + bias[j]
    memcpy(y, h, n * sizeof(real))


cdef inline void state_product(const Factors* w, Py_ssize_t m) noexcept nogil:
    """m rows of a product with w_hh, packed or not."""
    cdef bint t = w.b_column != 1
    cdef Py_ssize_t ldb = w.b_column if t else max(w.b_term, w.n)           # a single row has any b_term
    if w.packed != NULL: multiply_rows(w, m)
    else: product(w.dtype, False, t, m, w.n, w.k, w.a, w.a_row, w.b, ldb, w.beta, w.c, w.ldc)


cdef struct Steps:          # steps `start` to `stop` - 1 of a recurrence, of which `gates` are in memory
    Recurrence* r
    Py_ssize_t start, stop
    char* gates             # the gates at step `start`
    char* bias              # the sum of both; for the new value of a GRU only that of x
    char* products          # a GRU's products with its state
    Factors w               # factors of the product with the state


cdef void run_steps(const Steps* s, Py_ssize_t b0, Py_ssize_t b1, real* bias) noexcept nogil:
    """These steps of sequences b0 to b1 - 1."""
    cdef const Recurrence* r = s.r
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, m = b1 - b0, turn, t, b
    cdef real* z
    cdef real* h = <real*>r.h
    cdef real* products = <real*>s.products
    cdef real* y
    cdef Factors w = s.w
    w.a = <char*>(h + b0 * n)
    for turn in range(s.stop - s.start):
        t = s.stop - 1 - turn if r.reverse else s.start + turn
        z = <real*>s.gates + ((t - s.start) * r.batch + b0) * k
        w.c = <char*>(products + b0 * 3 * n if r.kind == GRU else z)
        state_product(&w, m)
        for b in range(b0, b1):
            y = <real*>r.y + (t * r.batch + b) * n
            if not is_active(r, t, b):
                memset(y, 0, n * sizeof(real))
                memset(z, 0, k * sizeof(real))
                if r.cells != NULL: memset(<real*>r.cells + (t * r.batch + b) * n, 0, n * sizeof(real))
            elif r.kind == LSTM:
                lstm_step(z, bias, <real*>r.c + b * n, <real*>r.cells + (t * r.batch + b) * n if r.cells != NULL else
                          NULL, h + b * n, y, n)
            elif r.kind == GRU:
                gru_step(z, products + b * 3 * n, bias, <real*>r.b_hh, h + b * n, y, n)
            else: plain_step(r.kind, z, bias, h + b * n, y, n)
            z += k


cdef void some_sequences(void* job, Py_ssize_t b0, Py_ssize_t b1) noexcept nogil:
    cdef const Steps* s = <const Steps*>job
    call(s.r.dtype, run_steps[float], run_steps[double], s, b0, b1, <void*>s.bias)


cdef void add_biases(const Recurrence* r, real* out) noexcept nogil:
    cdef Py_ssize_t j, n = rows_of_weight(r.kind) * r.hidden
    for j in range(n):
        out[j] = (<real*>r.b_ih)[j]
        if r.kind != GRU or j < 2 * r.hidden: out[j] += (<real*>r.b_hh)[j]


cdef int on_sequences(range_t f, void* job, const Recurrence* r, Py_ssize_t steps) except -1 nogil:
    """Distribute the sequences among threads."""
    cdef int t = threads_for(steps * r.batch * r.hidden // 32 * gates_of(r.kind) * (r.hidden + 32))
    begin_products()
    parallel_for(f, job, r.batch, (r.batch + t - 1) // t, t)
    end_products()


cdef int recur(Recurrence* r) except -1 nogil:
    """y, h, c, and gates and cells if they are kept. h and c have been set to the first states."""
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, rows = rows_of_weight(r.kind) * n, size = itemsize(r.dtype)
    cdef Py_ssize_t at_once = steps_at_once(r), chunks = (r.steps + at_once - 1) // at_once, turn, chunk, count
    cdef char* free = r.workspace
    cdef Steps s
    cdef Factors w
    s.w = Factors(r.dtype, rows, n, NULL, n, 1, r.w_hh, 1, n, NULL, NULL, 3 * n if r.kind == GRU else k, r.kind != GRU,
                  1, NULL, 0)
    if repeats(r):
        pack(&s.w, free)
        free += packed_bytes(r.dtype, rows, n)
    s.r, s.bias, s.products, s.gates = r, free, free + rows * size, r.gates
    free += rows * size
    w = Factors(r.dtype, rows, r.width, NULL, r.width, 1, r.w_ih, 1, r.width, NULL, NULL, k, 0, 1, NULL, 0)
    call(r.dtype, add_biases[float], add_biases[double], r, <void*>s.bias)
    if r.kind == GRU: free += r.batch * 3 * n * size
    if r.gates == NULL:
        s.gates = free
        free += at_once * r.batch * k * size
    for turn in range(chunks):
        chunk = chunks - 1 - turn if r.reverse else turn
        s.start, s.stop = chunk * at_once, min(r.steps, (chunk + 1) * at_once)
        if r.gates != NULL: s.gates = r.gates + s.start * r.batch * k * size
        count = (s.stop - s.start) * r.batch
        w.a, w.c = free, s.gates
        if r.x.layout.dense: w.a = r.x.data + s.start * r.batch * r.width * size
        else: gather(free, r.x, s.start * r.batch * r.width, count * r.width)
        multiply_shared(&w, count)
        on_sequences(some_sequences, &s, r, s.stop - s.start)


# ---- backward --------------------------------------------------------------------------------------------------------

cdef void lstm_back(real* z, const real* gz, const real* restrict c, const real* restrict before, const real* gcell,
                    const real* restrict dh, real* restrict dc, Py_ssize_t n) noexcept nogil:
    """z becomes the gradient before activation, dc that of the cell before. gz and gcell, gradients of the activated
    gates and of the cell, may be NULL."""
    cdef real* restrict zi = z
    cdef real* restrict zf = z + n
    cdef real* restrict zg = z + 2 * n
    cdef real* restrict zo = z + 3 * n
    cdef Py_ssize_t j
    cdef real i, f, g, o, t, d
    if gcell != NULL:
        for j in range(n): dc[j] += gcell[j]
    if gz == NULL:
        for j in range(n):
            i, f, g, o, t = zi[j], zf[j], zg[j], zo[j], tanh(c[j])
            d = dc[j] + dh[j] * o * (1 - t * t)
            zi[j], zf[j] = d * g * i * (1 - i), d * before[j] * f * (1 - f)
            zg[j], zo[j] = d * i * (1 - g * g), dh[j] * t * o * (1 - o)
            dc[j] = d * f
        return
    for j in range(n):
        i, f, g, o, t = zi[j], zf[j], zg[j], zo[j], tanh(c[j])
        d = dc[j] + dh[j] * o * (1 - t * t)
        zi[j], zf[j] = (d * g + gz[j]) * i * (1 - i), (d * before[j] + gz[n + j]) * f * (1 - f)
        zg[j], zo[j] = (d * i + gz[2 * n + j]) * (1 - g * g), (dh[j] * t + gz[3 * n + j]) * o * (1 - o)
        dc[j] = d * f


cdef void gru_back(real* z, const real* gz, const real* restrict before, const real* restrict dh,
                   real* restrict dbefore, Py_ssize_t n) noexcept nogil:
    """z becomes the gradients before activation of r, u and n, and that of s_n; dbefore = the direct part of the
    gradient of the state before. gz, the gradient of the activated gates, may be NULL."""
    cdef real* restrict zr = z
    cdef real* restrict zu = z + n
    cdef real* restrict zv = z + 2 * n
    cdef real* restrict zs = z + 3 * n
    cdef Py_ssize_t j
    cdef real r, u, v, d
    for j in range(n): dbefore[j] = dh[j] * zu[j]
    if gz == NULL:
        for j in range(n):
            r, u, v = zr[j], zu[j], zv[j]
            d = dh[j] * (1 - u) * (1 - v * v)
            zr[j], zu[j] = d * zs[j] * r * (1 - r), dh[j] * (before[j] - v) * u * (1 - u)
            zv[j], zs[j] = d, d * r
        return
    for j in range(n):
        r, u, v = zr[j], zu[j], zv[j]
        d = (dh[j] * (1 - u) + gz[2 * n + j]) * (1 - v * v)
        zr[j] = (d * zs[j] + gz[j]) * r * (1 - r)
        zu[j] = (dh[j] * (before[j] - v) + gz[n + j]) * u * (1 - u)
        zv[j], zs[j] = d, d * r + gz[3 * n + j]


cdef void plain_back(int kind, const real* y, const real* dh, real* dz, Py_ssize_t n) noexcept nogil:
    if kind == TANH:
        for j in range(n): dz[j] = dh[j] * (1 - y[j] * y[j])
    else:
        for j in range(n): dz[j] = dh[j] if y[j] > 0 else 0


cdef inline const real* before_of(const Recurrence* r, const real* states, const real* first, Py_ssize_t t,
                                  Py_ssize_t b) noexcept nogil:
    """The state of sequence b before step t."""
    if is_first(r, t, b): return first + b * r.hidden
    return states + ((t + 1 if r.reverse else t - 1) * r.batch + b) * r.hidden


cdef struct Back:
    Recurrence* r
    Factors w               # factors of the product with dz
    Factors w2              # factors of the product for the new value of a GRU


cdef void run_back(const Back* s, Py_ssize_t b0, Py_ssize_t b1, real* dh) noexcept nogil:
    """All steps of sequences b0 to b1 - 1, the last one first. `dh` is the workspace."""
    cdef const Recurrence* r = s.r
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, m = b1 - b0, turn, t, b, j, at
    cdef real* dnext = dh + r.batch * n             # the gradient of the state before
    cdef real* dc = dnext + r.batch * n
    cdef real* dz
    cdef real* z
    cdef const real* gz
    cdef real* p
    cdef Factors w = s.w, w2 = s.w2
    w.c = w2.c = <char*>(dnext + b0 * n)
    if r.gh != NULL: memcpy(dh + b0 * n, <real*>r.gh + b0 * n, m * n * sizeof(real))
    else: memset(dh + b0 * n, 0, m * n * sizeof(real))
    if r.gc != NULL: memcpy(dc + b0 * n, <real*>r.gc + b0 * n, m * n * sizeof(real))
    else: memset(dc + b0 * n, 0, m * n * sizeof(real))
    for turn in range(r.steps):
        t = turn if r.reverse else r.steps - 1 - turn
        for b in range(b0, b1):
            at = t * r.batch + b
            dz, z = <real*>r.dgates + at * k, <real*>r.gates + at * k if r.gates != NULL else NULL
            gz = <real*>r.ggates + at * k if r.ggates != NULL else NULL
            if not is_active(r, t, b):
                memset(dz, 0, k * sizeof(real))
                continue
            if z != NULL and z != dz: memcpy(dz, z, k * sizeof(real))
            p = dh + b * n
            if r.gy != NULL:
                for j in range(n): p[j] += (<real*>r.gy)[at * n + j]
            if r.kind == LSTM:
                lstm_back(dz, gz, <real*>r.cells + at * n, before_of(r, <real*>r.cells, <real*>r.c0, t, b),
                          <real*>r.gcells + at * n if r.gcells != NULL else NULL, p, dc + b * n, n)
            elif r.kind == GRU:
                gru_back(dz, gz, before_of(r, <real*>r.y, <real*>r.h0, t, b), p, dnext + b * n, n)
            else: plain_back(r.kind, <real*>r.y + at * n, p, dz, n)
        if turn == r.steps - 1 and r.dh0 == NULL: break
        dz = <real*>r.dgates + (t * r.batch + b0) * k
        w.a = <char*>dz
        state_product(&w, m)
        if r.kind == GRU:
            w2.a = <char*>(dz + 3 * n)
            state_product(&w2, m)
        for b in range(b0, b1):
            if is_active(r, t, b): memcpy(dh + b * n, dnext + b * n, n * sizeof(real))
    if r.dh0 != NULL: memcpy(<real*>r.dh0 + b0 * n, dh + b0 * n, m * n * sizeof(real))
    if r.dc0 != NULL: memcpy(<real*>r.dc0 + b0 * n, dc + b0 * n, m * n * sizeof(real))


cdef void some_back(void* job, Py_ssize_t b0, Py_ssize_t b1) noexcept nogil:
    cdef const Back* s = <const Back*>job
    call(s.r.dtype, run_back[float], run_back[double], s, b0, b1, <void*>s.r.workspace)


cdef int recur_back(Recurrence* r) except -1 nogil:
    """dgates, dh0 and dc0 from the gradients of the outputs."""
    cdef Py_ssize_t n = r.hidden, k = gates_of(r.kind) * n, terms = 2 * n if r.kind == GRU else k
    cdef Back s
    s.r = r
    s.w = Factors(r.dtype, n, terms, NULL, k, 1, r.w_hh, n, 1, NULL, NULL, n, r.kind == GRU, 1, NULL, 0)
    s.w2 = s.w
    s.w2.k, s.w2.b, s.w2.beta = n, r.w_hh + 2 * n * n * itemsize(r.dtype), 1
    if repeats(r):
        pack(&s.w, r.workspace)
        r.workspace += packed_bytes(r.dtype, n, terms)
        if r.kind == GRU:
            pack(&s.w2, r.workspace)
            r.workspace += packed_bytes(r.dtype, n, n)
    return on_sequences(some_back, &s, r, r.steps)


cdef void first_rows(const Recurrence* r, char* out) noexcept nogil:
    """Copy the rows of dgates of the first step of each sequence."""
    cdef Py_ssize_t b, t, nbytes = gates_of(r.kind) * r.hidden * itemsize(r.dtype)
    for b in range(r.batch):
        t = 0
        if r.reverse: t = last_step(r, b)
        memcpy(out + b * nbytes, r.dgates + (t * r.batch + b) * nbytes, nbytes)
