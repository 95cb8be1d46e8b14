"""scaled_dot_product_attention."""

import math

from libc.stdint cimport uint64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.execute.generator cimport Generator, draw_for, give_back, given_or_default, read_chance
from cygrad.core.graph.operator cimport (
    BackwardCall, Call, Operator, Stage, add_stage, hide, output_bit, reads_temporary, saved, temporary,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.graph.calls cimport in_train_mode
from cygrad.core.thread_state cimport flags
from cygrad.core.execute.run cimport apply_list
from cygrad.kernels.layers cimport attention as kernels
from cygrad.kernels.array cimport BOOL, MAX_NDIM, Array, Layout, is_real, itemsize
from cygrad.kernels.layers.attention cimport ADDED_MASK, BOOL_MASK, DK, DQ, DV, NO_MASK, Attention, Matrices, slot_bytes
from cygrad.kernels.driver cimport gather
from cygrad.kernels.threads cimport threads_for

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import as_float, described
from cygrad.core.interop.creation import arange, ones
from cygrad.ops.elementwise.compare import greater_equal, not_equal, where
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.layers.random import dropout_with
from cygrad.ops.reductions.reduce import any as any_of
from cygrad.ops.reductions.reduce import sum, sum_to
from cygrad.ops.shapes.shape import broadcast_to, reshape, swapaxes
from cygrad.ops.reductions.softmax import softmax


cdef class Attending(Attributes):
    """The attributes of attention: whether key j is hidden from query i < j, whether there is a mask, the factor of the
    scores, dropout's probability, key and counter, and whether the operands and the result are (..., rows, heads,
    columns) instead of (..., heads, rows, columns)."""
    cdef readonly bint is_causal
    cdef readonly bint masked
    cdef readonly double scale
    cdef readonly double p
    cdef readonly uint64_t key
    cdef readonly uint64_t counter
    cdef readonly bint heads_last

    def __cinit__(self, bint is_causal, bint masked, double scale, double p=0, uint64_t key=0, uint64_t counter=0,
                  bint heads_last=False):
        self.is_causal, self.masked, self.scale = is_causal, masked, scale
        self.p, self.key, self.counter, self.heads_last = p, key, counter, heads_last

    cdef dict keywords(self):
        """The key is the `seed` of a generator."""
        rest = Attributes.keywords(self)
        return {"seed": rest.pop("key")} | rest


# ---- memory ----------------------------------------------------------------------------------------------------------

cdef Array heads_first(const Array* x, const void* attributes, LocalLayout* l) noexcept nogil:
    """x as (..., heads, rows, columns), by a layout in `l` if it is not so already."""
    cdef Array y = x[0]
    cdef int n = x.layout.ndim, d
    if not (<Attending>attributes).heads_last: return y
    y.layout = lay.local(l)
    l.layout.ndim = n
    for d in range(n): l.shape[d], l.strides[d] = x.layout.shape[d], x.layout.strides[d]
    l.shape[n - 3], l.shape[n - 2] = l.shape[n - 2], l.shape[n - 3]
    l.strides[n - 3], l.strides[n - 2] = l.strides[n - 2], l.strides[n - 3]
    lay.finish(&l.layout)
    return y


cdef bint lies_in_rows(const Layout* l) noexcept nogil:
    """Whether gemm() can read the matrices in place, row by row."""
    cdef Py_ssize_t rows = l.shape[l.ndim - 2], columns = l.shape[l.ndim - 1]
    return (l.strides[l.ndim - 1] == 1 or columns <= 1) and (l.strides[l.ndim - 2] >= columns or rows <= 1)


cdef size_t capacity(const Array* x) noexcept nogil:
    """Bytes to pack x; 0 if it is read in place."""
    return 0 if lies_in_rows(x.layout) else (x.layout.size * itemsize(x.dtype) + 63) // 64 * 64


cdef Matrices in_place(const Array* x) noexcept nogil:
    """The matrices of x, which lie in rows, or of a dense x."""
    cdef const Layout* l = x.layout
    cdef Matrices m
    m.nd = l.ndim - 2
    for d in range(m.nd): m.shape[d], m.strides[d] = l.shape[d], l.strides[d]
    m.data, m.down, m.right = x.data, l.strides[l.ndim - 2], 1
    if l.shape[l.ndim - 2] <= 1: m.down = max(<Py_ssize_t>1, l.shape[l.ndim - 1])
    return m


cdef Matrices matrices(const Array* x, char** workspace) noexcept nogil:
    """The matrices of x: in place, or packed into the workspace, whose pointer is advanced."""
    cdef const Layout* l = x.layout
    cdef Matrices m = in_place(x)
    cdef Py_ssize_t step
    if lies_in_rows(l): return m
    gather(workspace[0], x, 0, l.size)
    m.data = workspace[0]
    workspace[0] += capacity(x)
    m.down = l.shape[l.ndim - 1]
    step = m.down * l.shape[l.ndim - 2]
    for d in range(m.nd - 1, -1, -1):
        m.strides[d] = step
        step *= l.shape[d]
    return m


cdef Matrices spread_matrices(char* data, const Layout* mask, const Matrices* q) noexcept nogil:
    """The matrix of a mask for each matrix of q, with steps of 0 where the mask broadcasts."""
    cdef Matrices m = q[0]
    cdef int d, i
    m.data = data
    for d in range(m.nd + 2):
        i = d - (m.nd + 2) + mask.ndim
        if d == m.nd: m.down = mask.strides[i] if i >= 0 and mask.shape[i] != 1 else 0
        elif d == m.nd + 1: m.right = mask.strides[i] if i >= 0 and mask.shape[i] != 1 else 0
        else: m.strides[d] = mask.strides[i] if i >= 0 and mask.shape[i] != 1 else 0
    return m


cdef Attention sizes_of(const void* attributes, const Array* q, const Array* k, Py_ssize_t value_width,
                        const Array* mask) noexcept nogil:
    """The job without its memory. `mask` may be NULL."""
    cdef Attention a
    cdef const Layout* l = q.layout
    cdef int n = l.ndim, d
    memset(&a, 0, sizeof(Attention))
    a.dtype, a.heads, a.group = q.dtype, 1, 1
    a.queries, a.width, a.keys, a.value_width = l.shape[n - 2], l.shape[n - 1], k.layout.shape[n - 2], value_width
    for d in range(n - 2): a.heads *= l.shape[d]
    if n > 2 and k.layout.shape[n - 3]: a.group = l.shape[n - 3] // k.layout.shape[n - 3]
    a.causal, a.scale = (<Attending>attributes).is_causal, (<Attending>attributes).scale
    a.p, a.key, a.counter = (<Attending>attributes).p, (<Attending>attributes).key, (<Attending>attributes).counter
    a.kind = NO_MASK if mask == NULL else BOOL_MASK if mask.dtype == BOOL else ADDED_MASK
    return a


cdef Py_ssize_t work_of(const Attention* a) noexcept nogil:
    """The work of one product of all blocks, in elements of an elementwise operation."""
    return a.heads * a.queries * a.keys // 16 * (a.width + a.value_width + 8)


cdef Py_ssize_t workers_for(const Attention* a) noexcept nogil:
    """The number of threads that the workspace is for."""
    return max(<Py_ssize_t>1, min(<Py_ssize_t>threads_for(work_of(a)),
                                  a.heads * ((a.queries + kernels.QUERIES - 1) // kernels.QUERIES)))


cdef int check_matrices(const Layout* l, int i, int d) except -1 nogil:
    """Raise ValueError if product() cannot take operand `i`, whose rows are along dimension d: sizes have 32 bits."""
    cdef Py_ssize_t rows = l.shape[d], columns = l.shape[l.ndim - 1], step = l.strides[d]
    if max(rows, columns, step) <= 0x7fffffff: return 0
    with gil: raise ValueError(f"scaled_dot_product_attention: {('query', 'key', 'value', 'the result')[i]} has {rows} "
                               f"rows and {columns} columns, with rows {step} elements apart; wanted at most 2^31 - 1")


# ---- the operator ----------------------------------------------------------------------------------------------------

cdef class Attend(Operator):
    """y = p v, p = softmax(s), s = scale q k' + mask        dv = p' g        dmask = ds, summed
    dq = scale ds k        dk = scale ds' q        with ds = p (g v' - sum g y)

    Backward keeps q, k, v, the mask, y and log sum e^s of each query (a hidden output), and computes p again, block by
    block; for dv alone neither v nor y. The formula, for create_graph, makes all of p and ds."""
    lanes = "aligning"
    traits = "fused differentiable joint_formula"
    operands, hidden = "query key value attn_mask?", "logs"
    reads = dict.fromkeys(("query", "key", "attn_mask"), "query key value attn_mask y logs") | {
        "value": "query key attn_mask logs"}

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef LocalLayout local[3]
        cdef Array x[3]
        cdef Attention a
        cdef int d, i, n = c.x[0].layout.ndim
        for i in range(3): x[i] = heads_first(&c.x[i], c.attributes, &local[i])
        a = sizes_of(c.attributes, &x[0], &x[1], x[2].layout.shape[n - 1], NULL)
        for d in range(n - 1): shape[d] = x[0].layout.shape[d]
        shape[n - 1] = a.value_width
        if c.wanted:
            hide(c, lay.dense(n - 1, shape), c.x[0].dtype)
        if (<Attending>c.attributes).heads_last: shape[n - 3], shape[n - 2] = shape[n - 2], shape[n - 3]
        c.y[0].layout, c.y[0].dtype = lay.dense(n, shape), c.x[0].dtype
        for i in range(3):
            check_matrices(x[i].layout, i, n - 2)
            c.workspace_bytes += capacity(&x[i])
        check_matrices(c.y[0].layout, 3, n - 3 if (<Attending>c.attributes).heads_last else n - 2)
        c.workspace_bytes += workers_for(&a) * slot_bytes(a.dtype, False)
        c.work = work_of(&a)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout local[4]
        cdef Array x[3]
        cdef Array y = heads_first(&c.y[0], c.attributes, &local[3])
        cdef char* free = c.workspace
        cdef Attention a
        for i in range(3): x[i] = heads_first(&c.x[i], c.attributes, &local[i])
        a = sizes_of(c.attributes, &x[0], &x[1], y.layout.shape[y.layout.ndim - 1], &c.x[3] if c.n_in == 4 else NULL)
        if y.layout.size == 0 and a.heads * a.queries == 0: return 0
        a.q, a.k, a.v = matrices(&x[0], &free), matrices(&x[1], &free), matrices(&x[2], &free)
        if c.n_in == 4: a.mask = spread_matrices(c.x[3].data, c.x[3].layout, &a.q)
        a.y, a.statistics = in_place(&y), c.y[1].data if c.hidden else NULL
        a.workspace, a.workers = free, (c.workspace + c.workspace_bytes - free) // slot_bytes(a.dtype, False)
        return kernels.attention(&a)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """First delta, which no longer needs y; then dq, dk and dv together; then dmask, from the same blocks."""
        cdef bint derived = b.want[0] or b.want[1] or b.n_in == 4 and b.want[3]
        cdef bint of_mask = b.n_in == 4 and b.want[3]
        cdef LocalLayout local[5]
        cdef Array q = saved_first(b, 0, &local[0]), k = saved_first(b, 1, &local[1]), v, y, mask
        cdef Array g = heads_first(&b.g[0], b.attributes, &local[2])
        cdef Attention a
        cdef Stage* s
        cdef size_t nbytes = capacity(&q) + capacity(&k) + capacity(&g)
        if b.n_in == 4: mask = saved(b, 3)
        a = sizes_of(b.attributes, &q, &k, g.layout.shape[g.layout.ndim - 1], &mask if b.n_in == 4 else NULL)
        b.work = max(b.work, 2 * work_of(&a))
        if derived:
            v, y = saved_first(b, 2, &local[3]), saved_first(b, OWN, &local[4])
            s = add_stage(b, temporary(0))
            s.saved, s.like = output_bit(0), saved(b, OWN | 1).layout
            s.workspace_bytes = capacity(&g) + capacity(&y)
            nbytes += capacity(&v)
        nbytes += workers_for(&a) * slot_bytes(a.dtype, True)
        if b.want[0] or b.want[1] or b.want[2]:
            s = add_stage(b, 7)
            s.saved, s.workspace_bytes = s.saved & ~output_bit(0), nbytes
            s.gradients |= reads_temporary(0) if derived else 0
        if of_mask:
            s = add_stage(b, 8)
            s.saved, s.workspace_bytes = s.saved & ~output_bit(0), nbytes
            s.gradients |= reads_temporary(0)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const Stage* s = &b.stages[stage]
        cdef char* free = b.workspace
        cdef LocalLayout local[4]
        cdef Array q, k, v, mask, g = heads_first(&b.g[0], b.attributes, &local[0])
        cdef Attention a
        if b.g[0].layout.size == 0 and s.computes == temporary(0):
            memset(b.temporaries[0].data, 0, b.temporaries[0].layout.size * itemsize(b.dtype))
            return 0
        if s.computes == temporary(0): return compute_delta(b)
        q, k = saved_first(b, 0, &local[1]), saved_first(b, 1, &local[2])
        if b.n_in == 4: mask = saved(b, 3)
        a = sizes_of(b.attributes, &q, &k, g.layout.shape[g.layout.ndim - 1], &mask if b.n_in == 4 else NULL)
        a.q, a.k, a.g = matrices(&q, &free), matrices(&k, &free), matrices(&g, &free)
        if s.saved & 4:
            v = saved_first(b, 2, &local[3])
            a.v = matrices(&v, &free)
        if b.n_in == 4: a.mask = spread_matrices(mask.data, mask.layout, &a.q)
        a.statistics, a.delta = saved(b, OWN | 1).data, b.temporaries[0].data
        a.workspace, a.workers = free, (b.workspace + s.workspace_bytes - free) // slot_bytes(a.dtype, True)
        if s.computes == 8:
            memset(b.dx[3].data, 0, b.dx[3].layout.size * itemsize(b.dtype))
            a.dmask = spread_matrices(b.dx[3].data, b.dx[3].layout, &a.q)
            return kernels.mask_gradient(&a)
        if b.want[0]: a.dq, a.wanted = into(b, 0), a.wanted | DQ
        if b.want[1]: a.dk, a.wanted = into(b, 1), a.wanted | DK
        if b.want[2]: a.dv, a.wanted = into(b, 2), a.wanted | DV
        return kernels.gradients(&a)

    cdef object formula(self, c, int i, g):
        """The gradients of all inputs: dropout multiplies p and its gradient by d."""
        a, q, k = c.attributes, c.input(0), c.input(1)
        masked, last = a.masked, a.heads_last
        if last: q, k, g = [swapaxes(x, -2, -3) for x in (q, k, g)]
        shape, group = q.shape, 1 if q.ndim == 2 or not k.shape[-3] else q.shape[-3] // k.shape[-3]
        mask = c.input(3) if masked else None
        if group != 1:                              # the heads of a group become a dimension
            parts = (*shape[:-3], shape[-3] // group, group)
            q, g = reshape(q, (*parts, *shape[-2:])), reshape(g, (*parts, *g.shape[-2:]))
            k = k[..., None, :, :]
            if mask is not None:
                mask = reshape(broadcast_to(mask, (*shape[:-1], k.shape[-2])), (*parts, shape[-2], k.shape[-2]))
        p = weights(q, k, mask, a.is_causal, a.scale)
        dp = None
        if c.wants(0) or c.wants(1) or masked and c.wants(3):
            v = swapaxes(c.input(2), -2, -3) if last else c.input(2)
            dp = matmul(g, swapaxes(v[..., None, :, :] if group != 1 else v, -1, -2))
        dropped = p
        if a.p:
            factors = dropout_factors(p, a.p, a.key, a.counter)
            dropped, dp = p * factors, None if dp is None else dp * factors
        dv = matmul(swapaxes(dropped, -1, -2), g) if c.wants(2) else None
        ds = None if dp is None else p * (dp - sum(dp * p, -1, True))
        dq = reshape(matmul(ds, k) * a.scale, shape) if c.wants(0) else None
        dk = matmul(swapaxes(ds, -1, -2), q) * a.scale if c.wants(1) else None
        if group != 1: dk, dv = (None if d is None else sum(d, -3) for d in (dk, dv))
        if last: dq, dk, dv = [None if d is None else swapaxes(d, -2, -3) for d in (dq, dk, dv)]
        if not masked: return dq, dk, dv
        return dq, dk, dv, sum_to(reshape(ds, (*shape[:-1], k.shape[-2])), c.shape(3)) if c.wants(3) else None


cdef class ScaledDotProductAttention(Attend):
    """y = p v, p = softmax(s), s = scale q k' + mask        dv = p' g        dmask = ds, summed
    dq = scale ds k        dk = scale ds' q        with ds = p (g v' - sum g y)"""
    row, functions = "attend", {"scaled_dot_product_attention": "query key value attn_mask?"}


cdef class AttentionWithDropout(Attend):
    """y = d p v, p = softmax(scale q k' + mask), d = 0 or 1 / (1 - dropout)        dv = (d p)' g
    dq = scale ds k        dk = scale ds' q        with ds = p (d (g v') - sum g y)

    Backward draws d again from the key and the counter. The rest is as without dropout. In predict mode d is 1; the
    operator is recorded because backward must detect nodes that depend on the mode."""
    traits = "fused differentiable mode_dependent joint_formula"
    row, functions = "attend_with_dropout", {"attention_with_dropout": "query key value"}


cdef Array saved_first(const BackwardCall* b, int source, LocalLayout* l) noexcept nogil:
    """A saved operand or result as (..., heads, rows, columns)."""
    cdef Array x = saved(b, source)
    return heads_first(&x, b.attributes, l)


cdef Matrices into(const BackwardCall* b, int i) noexcept nogil:
    """The matrices of the gradient of input i, which is dense."""
    cdef LocalLayout local
    cdef Array dx = heads_first(&b.dx[i], b.attributes, &local)
    return in_place(&dx)


cdef int compute_delta(BackwardCall* b) except -1 nogil:
    cdef Attention a
    cdef LocalLayout local[2]
    cdef Array y = saved_first(b, OWN, &local[0]), g = heads_first(&b.g[0], b.attributes, &local[1])
    cdef const Layout* l = y.layout
    cdef char* free = b.workspace
    memset(&a, 0, sizeof(Attention))
    a.dtype, a.value_width, a.queries = b.dtype, l.shape[l.ndim - 1], l.shape[l.ndim - 2]
    a.heads = l.size // (a.value_width * a.queries)
    a.g, a.y, a.delta = matrices(&g, &free), matrices(&y, &free), b.temporaries[0].data
    kernels.deltas(&a)


# ---- the formula -----------------------------------------------------------------------------------------------------

cdef object weights(q, k, mask, bint causal, double scale):
    """softmax(scale q k' + mask), as a tensor. The weights of a row that may see nothing are zeros."""
    s = matmul(q, swapaxes(k, -1, -2)) * scale
    if mask is not None: s = where(mask, s, -math.inf) if mask.dtype == "bool" else s + mask
    if causal: s = where(greater_equal(arange(s.shape[-2])[:, None], arange(s.shape[-1])), s, -math.inf)
    if mask is None: return softmax(s)
    seen = any_of(not_equal(s.detach(), -math.inf), -1, True)
    return where(seen, softmax(where(seen, s, 0.0)), 0.0)


cdef object dropout_factors(p, chance, key, counter):
    """0 or 1 / (1 - chance) for each weight. The random numbers of a row begin with a new block of four."""
    padded = ones((*p.shape[:-1], (p.shape[-1] + 3) // 4 * 4), dtype=p.dtype)
    return dropout_with(padded, chance, key, counter)[..., :p.shape[-1]]


# ---- the functions ---------------------------------------------------------------------------------------------------

cdef Operator ATTENTION = ScaledDotProductAttention(), WITH_DROPOUT = AttentionWithDropout()
OPERATORS = {o.name: o for o in (ATTENTION, WITH_DROPOUT)}


def scaled_dot_product_attention(query: Data, key: Data, value: Data, attn_mask: Data | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False, *, generator: Generator | None = None) -> Tensor:
    """softmax(scale query key' + mask) value, along the last two dimensions (Vaswani et al. 2017).

    query is (..., L, E), key (..., S, E) and value (..., S, V), all of one floating dtype; the result is (..., L, V).
    Leading dimensions broadcast. With `enable_gqa`, dimension -3 counts heads, and each head of key and value serves as
    many heads of query as there are more of these (a multiple). `scale` is 1 / sqrt(E) by default.

    `attn_mask` broadcasts to (..., L, S): bools, True where a query may see a key, or numbers of the same dtype, which
    are added to the scores and may have gradients. With `is_causal`, query i sees keys 0 to i; both may be given. The
    result of a query that may see nothing is zeros, and so are its gradients.

    In train mode, a weight is set to zero with probability `dropout_p` and the others are divided by 1 - dropout_p; the
    random numbers come from `generator` (None: the default one).

    If the memory of `query` is that of (..., L, heads, E), so is the memory of the result.

    The matrix of weights is neither stored nor computed as a whole, but block by block, also in backward, which saves
    the operands, the result and one number for each query. Only create_graph makes the whole matrix. Raises ValueError
    for shapes that do not fit, TypeError for dtypes."""
    cdef Tensor q = ensure_tensor(query), k = ensure_tensor(key), v = ensure_tensor(value)
    cdef Tensor mask = None if attn_mask is None else ensure_tensor(attn_mask)
    cdef double p = read_chance("scaled_dot_product_attention", "dropout_p", dropout_p), factor
    cdef Generator source
    cdef Attending attributes
    cdef uint64_t blocks
    check_dtypes(q, k, v, mask)
    q, k, v = broadcast_heads(q, k, v, enable_gqa)
    check_mask(q.shape, k.shape, mask)
    factor = read_scale(scale, q.layout.shape[q.layout.ndim - 1])
    if p == 0 or not in_train_mode(flags()):
        attributes = Attending(is_causal, mask is not None, factor, 0, 0, 0, has_heads_last(q))
        return attended(ATTENTION if p == 0 else WITH_DROPOUT, q, k, v, mask, attributes)
    source = given_or_default(generator)
    blocks = math.prod(q.shape[:-1]) * ((k.shape[-2] + 3) // 4)
    attributes = Attending(is_causal, mask is not None, factor, p, 0, 0, has_heads_last(q))
    draw_for(source, blocks, attributes, &attributes.key, &attributes.counter)
    try: return attended(WITH_DROPOUT, q, k, v, mask, attributes)
    except:
        give_back(source, attributes.counter, blocks)
        raise


def attention_with_dropout(query: Data, key: Data, value: Data, p: float, seed: int, counter: int,
                           is_causal: bool = False) -> Tensor:
    """scaled_dot_product_attention in train mode, with a generator whose state is (seed, counter)."""
    cdef Tensor q = ensure_tensor(query), k = ensure_tensor(key), v = ensure_tensor(value)
    check_dtypes(q, k, v, None)
    q, k, v = broadcast_heads(q, k, v, False)
    return attended(WITH_DROPOUT, q, k, v, None,
                    Attending(is_causal, False, read_scale(None, q.shape[-1]),
                              read_chance("attention_with_dropout", "p", p), seed, counter, has_heads_last(q)))


def attend(query: Data, key: Data, value: Data, attn_mask: Data | None = None, is_causal: bool = False,
           scale: float | None = None, heads_last: bool = False) -> Tensor:
    """scaled_dot_product_attention of operands with equal leading dimensions, in which heads of key and value may serve
    several heads of query. With `heads_last`, the operands and the result are (..., rows, heads, columns)."""
    return attend_as(ATTENTION, query, key, value, attn_mask, is_causal, scale, heads_last, 0, 0, 0)


def attend_with_dropout(query: Data, key: Data, value: Data, attn_mask: Data | None = None, *, p: float,
                        seed: int | Generator, counter: int = 0, is_causal: bool = False, scale: float | None = None,
                        heads_last: bool = False) -> Tensor:
    """attend() with dropout, of a generator whose state is (seed, counter), or which is `seed`."""
    cdef double chance = read_chance("attend_with_dropout", "p", p)
    return attend_as(WITH_DROPOUT, query, key, value, attn_mask, is_causal, scale, heads_last, chance, seed, counter)


cdef Tensor attend_as(Operator op, query, key, value, attn_mask, bint causal, scale, bint last, double p,
                      seed, uint64_t counter):
    """attend() by `op`. Raises ValueError for shapes that do not fit."""
    cdef list inputs = [ensure_tensor(t) for t in (query, key, value)]
    cdef Tensor mask = None if attn_mask is None else ensure_tensor(attn_mask)
    cdef Attending a
    cdef int n = inputs[0].ndim
    q, k, v = [t.shape for t in inputs]
    fits = n == len(k) == len(v) and n >= (3 if last else 2)
    if fits and last: q, k, v = [(*s[:-3], s[-2], s[-3], s[-1]) for s in (q, k, v)]
    if fits: fits = q[-1] == k[-1] and k[-2] == v[-2] and q[:-3] == k[:-3] == v[:-3]
    if fits and n > 2: fits = k[-3] == v[-3] and (q[-3] % k[-3] == 0 if k[-3] else q[-3] == 0)
    if not fits:
        raise ValueError(f"attend: query is {inputs[0].shape}, key {inputs[1].shape} and value {inputs[2].shape}; "
                         f"wanted equal leading dimensions, or a multiple of the heads of key and value")
    check_dtypes(inputs[0], inputs[1], inputs[2], mask)
    check_mask(q, k, mask)
    factor = read_scale(scale, q[-1])
    if mask is not None: inputs.append(mask)
    if not isinstance(seed, Generator):
        return apply_list(op, inputs, Attending(causal, mask is not None, factor, p, seed, counter, last))
    a = Attending(causal, mask is not None, factor, p, 0, 0, last)
    draw_for(<Generator>seed, math.prod(q[:-1]) * ((k[-2] + 3) // 4), a, &a.key, &a.counter)
    return apply_list(op, inputs, a)


cdef bint has_heads_last(Tensor q) noexcept:
    """Whether the memory of q has the heads of a row side by side, as after reshape and permute of a projection."""
    cdef const Layout* l = q.layout
    cdef int n = l.ndim
    return n > 2 and l.shape[n - 3] > 1 and l.shape[n - 2] > 1 and 0 < l.strides[n - 3] < l.strides[n - 2]


cdef Tensor attended(Operator op, Tensor q, Tensor k, Tensor v, Tensor mask, Attending a):
    """The result. With the heads of q last, those of the result and of the gradients are last too, so joining the
    heads again copies nothing."""
    cdef list inputs = [swapaxes(x, -2, -3) for x in (q, k, v)] if a.heads_last else [q, k, v]
    if mask is not None: inputs.append(mask)
    y = apply_list(op, inputs, a)
    return swapaxes(y, -2, -3) if a.heads_last else y


cdef double read_scale(value, Py_ssize_t width) except? -1:
    if value is None: return 1 / math.sqrt(width) if width else 1
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"scaled_dot_product_attention: scale must be a number or None (1 / sqrt(E)), got "
                        f"{described(value)}")
    return as_float(value, "scaled_dot_product_attention: scale")


cdef int check_dtypes(Tensor q, Tensor k, Tensor v, Tensor mask) except -1:
    if not is_real(q.dtype) or k.dtype != q.dtype or v.dtype != q.dtype:
        raise TypeError(f"scaled_dot_product_attention: query is {DTYPES[q.dtype]}, key {DTYPES[k.dtype]} and value "
                        f"{DTYPES[v.dtype]}; wanted one floating dtype; cast with astype")
    if mask is not None and mask.dtype != BOOL and mask.dtype != q.dtype:
        raise TypeError(f"scaled_dot_product_attention: attn_mask is {DTYPES[mask.dtype]} and query {DTYPES[q.dtype]}; "
                        f"wanted bool (True: may be seen) or the dtype of query (added to the scores)")


cdef tuple broadcast_heads(Tensor q, Tensor k, Tensor v, bint grouped):
    """The operands with equal leading dimensions, but for fewer heads of k and v if they are grouped."""
    cdef tuple shapes = (q.shape, k.shape, v.shape)
    cdef bint fits = min(q.layout.ndim, k.layout.ndim, v.layout.ndim) >= (3 if grouped else 2)
    if fits: fits = shapes[0][-1] == shapes[1][-1] and shapes[1][-2] == shapes[2][-2]
    if fits and q.layout.ndim == k.layout.ndim == v.layout.ndim and shapes[0][:-2] == shapes[1][:-2] == shapes[2][:-2]:
        return q, k, v
    cdef int last = 3 if grouped else 2
    heads = [shape[-3] if grouped and fits else 1 for shape in shapes]
    if fits and grouped: fits = heads[1] == heads[2] and heads[1] > 0 and heads[0] % heads[1] == 0
    try:
        if not fits: raise ValueError
        lead = np.broadcast_shapes(*[shape[:-last] for shape in shapes])
    except ValueError:
        given = f"query is {q.shape}, key {k.shape} and value {v.shape}"
        if grouped:
            raise ValueError(f"scaled_dot_product_attention: {given}; wanted (..., heads, L, E), (..., n, S, E) and "
                             f"(..., n, S, V), where n divides heads and the leading dimensions broadcast") from None
        raise ValueError(f"scaled_dot_product_attention: {given}; wanted (..., L, E), (..., S, E) and (..., S, V), "
                         f"whose leading dimensions broadcast; fewer heads of key and value need "
                         f"enable_gqa=True") from None
    return tuple([x if x.shape[:-last] == lead else broadcast_to(x, (*lead, *x.shape[-last:])) for x in (q, k, v)])


cdef int check_mask(tuple q, tuple k, Tensor mask) except -1:
    if mask is None: return 0
    wanted = (*q[:-1], k[-2])
    given = mask.shape
    if len(given) <= len(wanted) and all([m in (1, n) for m, n in zip(given[::-1], wanted[::-1])]): return 0
    raise ValueError(f"scaled_dot_product_attention: attn_mask is {given}; wanted a shape that broadcasts to (..., L, "
                     f"S), here {wanted}")
