"""Rows of a table by index: embedding, and embedding_bag, which adds up the rows of each bag.

Backward saves the indices, without negative ones, in the smallest dtype that can hold them (a hidden output). A
gradient of the table is dense, or a GradientSlice of the rows that were read: then the formula computes it, because it
is the gradient of the output itself with the indices beside it. Under create_graph it is always dense."""

cimport cython

import operator

from libc.stdint cimport int64_t, uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport (
    ADDING, BackwardCall, Call, Operator, Stage, add_stage, adds, factor, hide, input_bit, output_bit, saved,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Leaf, Tensor, ensure_tensor, is_variable, node_of
from cygrad.core.graph.trace cimport seen_leaf
from cygrad.core.execute.run cimport apply2, apply_list
from cygrad.ops.shapes.index cimport index_tensor, place_dtype, refuse_indices, wide_places
from cygrad.kernels.layers cimport embedding as kernels
from cygrad.kernels.shapes cimport index as index_kernels
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, is_real, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.layers.embedding cimport MAX, MEAN, SUM, Bags

from cygrad.core.interop.creation import ones, zeros
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError, described
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.ops.elementwise.compare import less, maximum, not_equal, where
from cygrad.ops.shapes.index import add_at, scatter_add, take
from cygrad.ops.shapes.masks import select
from cygrad.ops.reductions.reduce import sum as sum_of
from cygrad.ops.reductions.scan import cumsum
from cygrad.ops.shapes.shape import astype, expand_dims, reshape

MODES = ("sum", "mean", "max")


cdef const char* dense(const Array* x, char** workspace) noexcept nogil:
    """Row-major memory of x: its own, or a copy in the workspace, whose pointer is advanced."""
    cdef char* copy = workspace[0]
    if x.layout.dense: return x.data
    gather(copy, x, 0, x.layout.size)
    workspace[0] += copied_bytes(x.layout, x.dtype)
    return copy


cdef size_t copied_bytes(const Layout* l, int dtype) noexcept nogil:
    """Bytes of workspace that dense() needs."""
    return 0 if l.dense else (l.size * itemsize(dtype) + 63) // 64 * 64


cdef int check_table(str name, const Array* weight) except -1 nogil:
    if weight.layout.ndim == 2: return 0
    with gil:
        raise ValueError(f"{name}: the weight is {lay.shape_tuple(weight.layout)}; wanted a table (rows, columns)")


# ---- embedding -------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Lookup(Attributes):
    """The attributes of embedding."""
    cdef readonly object padding_idx
    cdef readonly bint sparse
    cdef int64_t padding

    def __cinit__(self, padding_idx, bint sparse):
        self.padding_idx, self.sparse = padding_idx, sparse
        self.padding = -1 if padding_idx is None else padding_idx


cdef class Embedding(Operator):
    """y = w[i]        dw = 0, with dw[i] += g

    Saves the indices, in the smallest dtype. No gradient flows to the row padding_idx."""
    lanes, tangent = "looking_up", "linear"
    traits = "fused differentiable"
    operands, no_gradient, sparse = "indices weight", "indices", True
    hidden = reads = "places"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* i = c.x[0].layout
        check_table("embedding", &c.x[1])
        if i.ndim == MAX_NDIM:
            with gil: raise ValueError(f"embedding: the indices have {MAX_NDIM} dimensions, the maximum; reshape them")
        for d in range(i.ndim): shape[d] = i.shape[d]
        shape[i.ndim] = c.x[1].layout.shape[1]
        c.y[0].layout, c.y[0].dtype = lay.dense(i.ndim + 1, shape), c.x[1].dtype
        if not c.wanted: return 0
        hide(c, lay.dense_like(i), place_dtype(c.x[1].layout.shape[0]))

    cdef int forward(self, Call* c) except -1 nogil:
        cdef index_kernels.Places p
        index_kernels.aim(&p, &c.x[1], &c.y[0], 0, 1, &c.x[0])
        if not index_kernels.take(&p): refuse_indices("embedding: ", &p, &c.x[1], 0, 1, &c.x[0])
        return keep_places("embedding: ", &c.x[0], c.x[1].layout.shape[0], c.y[1].dtype, c.y[1].data) if c.hidden else 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s
        if (<Lookup>b.attributes).sparse: return 0          # the formula makes a GradientSlice
        s = add_stage(b, input_bit(1))
        s.gradients, s.writes, s.multiplies, s.by_rows = 1, ADDING, 2, 2
        s.workspace_bytes = copied_bytes(b.g[0].layout, b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Bags s
        cdef Array places = saved(b, OWN | 1)
        cdef char* free = b.workspace
        s.dtype, s.place_dtype, s.n, s.places = b.dtype, places.dtype, places.layout.size, places.data
        s.rows, s.row, s.first = b.dx[1].layout.shape[0], b.x[1].shape[1], b.row
        s.padding, s.adds, s.factor = (<Lookup>b.attributes).padding, adds(b, 1), factor(b, 1)
        s.g, s.y = dense(&b.g[0], &free), b.dx[1].data
        kernels.scatter_rows(&s)

    cdef object formula(self, c, int i, g):
        if i == 0: return None
        cdef Lookup a = c.attributes
        index = wide_places(c)
        g = reshape(g, (index.size, c.shape(1)[1]))
        return rows_gradient(c, reshape(index, (index.size,)), g, a.padding_idx, a.sparse)


cdef int keep_places(str name, const Array* index, Py_ssize_t rows, int dtype, char* places) except -1 nogil:
    """places = index, as narrow_places() writes them. Raises IndexError for an index out of range."""
    cdef int64_t bad = 0
    if kernels.narrow_places(index, rows, dtype, places, &bad): return 0
    with gil: raise IndexError(f"{name}index {bad} is out of range for a dimension of size {rows}")


cdef object rows_gradient(c, index, g, padding, bint sparse):
    """The gradient of the table (input 1), to whose row index[j] the row g[j] is added, except for the padding."""
    cdef bint slice = sparse and not c.create_graph
    if padding is not None:
        present = not_equal(index, padding)
        if slice: index, g = select(index, present), select(g, present)
        else: g = where(expand_dims(present, 1), g, 0)
    if slice: return GradientSlice(index, g, c.shape(1))
    return add_at(zeros(c.shape(1), g.dtype), 0, g, index)


# ---- embedding_bag ---------------------------------------------------------------------------------------------------

cdef struct Form:           # the attributes of embedding_bag, for nogil code
    kernels.BagMode kind
    bint offsets
    bint weighted
    bint sparse
    int64_t padding         # -1: none


@cython.no_gc
cdef class Bagged(Attributes):
    """The attributes of embedding_bag: `offsets` and `weighted` say whether it has those inputs."""
    cdef readonly str mode
    cdef readonly bint offsets
    cdef readonly bint weighted
    cdef readonly object padding_idx
    cdef readonly bint sparse
    cdef Form form

    def __cinit__(self, str mode, bint offsets, bint weighted, padding_idx, bint sparse):
        self.mode, self.offsets, self.weighted = mode, offsets, weighted
        self.padding_idx, self.sparse = padding_idx, sparse
        self.form = Form(SUM if mode == "sum" else MEAN if mode == "mean" else MAX, offsets, weighted, sparse,
                         -1 if padding_idx is None else padding_idx)

    cdef dict keywords(self):
        """Which inputs there are follows from the inputs."""
        return {"mode": self.mode, "sparse": self.sparse, "padding_idx": self.padding_idx}


cdef inline int scale_input(Form a) noexcept nogil:
    """The number of the input per_sample_weights."""
    return 3 if a.offsets else 2


cdef inline uint64_t read_for(Form a, int i) noexcept nogil:
    """What the gradient of the weight (1), or of per_sample_weights, reads."""
    cdef uint64_t mask = output_bit(1) | (input_bit(2) if a.offsets and a.kind != MAX else 0)
    if i != 1: return mask | 2
    return mask | (input_bit(scale_input(a)) if a.weighted else 0)


cdef void describe(Bags* s, Form a, const Array* offsets, const Layout* index, const Layout* table,
                   int dtype) noexcept nogil:
    """Fill in what forward and backward have in common. A bag has as many indices as the last dimension of `index`, if
    there are no offsets."""
    s.dtype, s.mode, s.padding, s.n = dtype, a.kind, a.padding, index.size
    s.rows, s.row = table.shape[0], table.shape[1]
    s.place_dtype = place_dtype(s.rows + (a.kind == MAX))
    s.scale, s.order, s.offsets, s.width = NULL, NULL, NULL, -1
    if a.offsets: s.bags, s.offsets = offsets.layout.size, <const int64_t*>offsets.data
    else: s.bags, s.width = index.shape[0], index.shape[1]


cdef int check_offsets(const Array* offsets, Py_ssize_t n, bint kept) except -1 nogil:
    """Raise an error unless the offsets begin at 0, never decrease and are at most n: ValueError in forward,
    InplaceError in backward (kept), where NumPy may have changed them."""
    cdef int64_t at, before = 0
    for b in range(offsets.layout.size):
        at = (<const int64_t*>offsets.data)[b]
        if before <= at <= n and (b or at == 0):
            before = at
            continue
        with gil:
            what = (f"embedding_bag: offset {at} of bag {b}; offsets begin at 0, never decrease and are at most the "
                    f"number of indices, {n}")
            if kept: raise InplaceError(f"{what}; it was modified since forward; pass a copy()")
            raise ValueError(what)
    if n and not offsets.layout.size:
        with gil: raise ValueError(f"embedding_bag: there are {n} indices but no offsets; the first bag begins at 0")


cdef class EmbeddingBag(Operator):
    """y = the sum of s w[i] over each bag        dw = 0, with dw[i] += s g        ds = g . w[i]

    The inputs are the indices, the table w, the offsets unless the indices have two dimensions, and s if it is given.
    For the mean, s is 1 / the size of the bag. A maximum has its gradient at the first of equal elements, and saves
    the row of each element instead of the indices."""
    traits = "fused differentiable"
    operands, no_gradient = "indices weight offsets? per_sample_weights?", "indices offsets"
    functions = {"embedding_bag_weighted": "indices weight per_sample_weights"}

    cdef tuple row_of(self, attributes):
        weighted = attributes.weighted and not attributes.offsets
        return "embedding_bag_weighted" if weighted else "embedding_bag", attributes.arguments()

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Form a = (<Bagged>c.attributes).form
        cdef Bags s
        cdef Py_ssize_t shape[2]
        cdef const Layout* i = c.x[0].layout
        check_table("embedding_bag", &c.x[1])
        describe(&s, a, &c.x[2] if a.offsets else NULL, i, c.x[1].layout, c.x[1].dtype)
        shape[0], shape[1] = s.bags, s.row
        c.y[0].layout, c.y[0].dtype = lay.dense(2, shape), c.x[1].dtype
        c.work = s.n * s.row
        c.workspace_bytes = copied_bytes(c.x[1].layout, s.dtype)
        if a.weighted: c.workspace_bytes += copied_bytes(c.x[scale_input(a)].layout, s.dtype)
        if not c.wanted or a.kind == MAX: c.workspace_bytes += s.n * itemsize(s.place_dtype)
        if not c.wanted: return 0
        hide(c, lay.dense_like(c.y[0].layout if a.kind == MAX else i), s.place_dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Form a = (<Bagged>c.attributes).form
        cdef Bags s
        cdef char* free = c.workspace
        cdef char* places
        describe(&s, a, &c.x[2] if a.offsets else NULL, c.x[0].layout, c.x[1].layout, c.x[1].dtype)
        if a.offsets: check_offsets(&c.x[2], s.n, False)
        s.weight = dense(&c.x[1], &free)
        if a.weighted: s.scale = dense(&c.x[scale_input(a)], &free)
        places = c.y[1].data if c.hidden and a.kind != MAX else free
        keep_places("embedding_bag: ", &c.x[0], s.rows, s.place_dtype, places)
        s.places, s.y = places, c.y[0].data
        if c.hidden and a.kind == MAX: s.order = c.y[1].data
        kernels.fold_bags(&s)

    cdef tuple call_of(self, operands, arguments):
        given = [i for i, name in enumerate(operands) if name is not None]
        weighted = "per_sample_weights" in operands
        return given, Bagged(arguments.get("mode", "mean"), "offsets" in operands, weighted, None, False)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef Form a = (<Bagged>c.attributes).form
        return (read_for(a, 1) if wanted & 2 else 0) | (read_for(a, scale_input(a)) if wanted & ~<uint64_t>2 else 0)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Form a = (<Bagged>b.attributes).form
        cdef int k = scale_input(a)
        cdef Stage* s
        if a.sparse and b.want[1]: return 0                 # the formula makes a GradientSlice
        if a.weighted and b.want[k]:
            s = add_stage(b, input_bit(k))
            s.saved, s.gradients = read_for(a, k), 1
            s.workspace_bytes = copied_bytes(b.g[0].layout, b.dtype) + copied_bytes(saved(b, 1).layout, b.dtype)
        if b.want[1]:
            s = add_stage(b, 2)
            s.saved, s.gradients, s.writes = read_for(a, 1), 1, ADDING
            s.workspace_bytes = copied_bytes(b.g[0].layout, b.dtype)
            if a.weighted: s.workspace_bytes += copied_bytes(saved(b, k).layout, b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Form a = (<Bagged>b.attributes).form
        cdef Bags s
        cdef Array offsets, x, places = saved(b, OWN | 1)
        cdef char* free = b.workspace
        cdef bint table = (b.stages[stage].computes & 2) != 0
        if a.offsets and a.kind != MAX:
            offsets = saved(b, 2)
            check_offsets(&offsets, places.layout.size, True)
        if not table: x = saved(b, 1)
        describe(&s, a, &offsets if a.kind != MAX else &b.g[0], places.layout, b.x[1] if table else x.layout, b.dtype)
        s.g = dense(&b.g[0], &free)
        if a.kind == MAX:
            s.bags, s.order = places.layout.shape[0], places.data
        else: s.places = places.data
        if not table:
            s.weight, s.y = dense(&x, &free), b.dx[scale_input(a)].data
            kernels.scale_grad(&s)
            return 0
        s.adds, s.y = adds(b, 1), b.dx[1].data
        if a.weighted:
            x = saved(b, scale_input(a))
            s.scale = dense(&x, &free)
        if a.kind == MAX: kernels.scatter_order(&s)
        else: kernels.scatter_bags(&s)

    cdef object formula(self, c, int i, g):
        cdef Bagged a = c.attributes
        if i == 0 or (i == 2 and a.offsets): return None
        index = wide_places(c)
        if a.form.kind == MAX:
            rows = c.shape(1)[0]
            g, index = where(less(index, rows), g, 0), where(less(index, rows), index, 0)
            return c.locally_constant(scatter_add(zeros(c.shape(1), g.dtype), 0, index, g))
        n, bags = index.size, g.shape[0]
        bag = bag_numbers(c.input(2) if a.offsets else None, index, bags)
        index = reshape(index, (n,))
        g = take(g, bag, 0)
        if i != 1:
            y = sum_of(g * take(c.input(1), index, 0), 1)
            if a.padding_idx is not None: y = where(not_equal(index, a.padding_idx), y, 0)
            return reshape(y, c.shape(i))
        if a.weighted: g = g * reshape(c.input(scale_input(a.form)), (n, 1))
        if a.form.kind == MEAN:
            each = ones(n, g.dtype) if a.padding_idx is None else astype(not_equal(index, a.padding_idx), g.dtype)
            sizes = maximum(add_at(zeros(bags, g.dtype), 0, each, bag), 1)
            g = g / expand_dims(take(sizes, bag, 0), 1)
        return rows_gradient(c, index, g, a.padding_idx, a.sparse)


cdef object bag_numbers(offsets, index, bags):
    """The bag of each index, (n,): the number of offsets up to its position, less 1."""
    if offsets is None:
        return cumsum(add_at(zeros(index.size, "int64"), 0, ones(max(bags - 1, 0), "int64"), steps(index, bags)), 0)
    begun = add_at(zeros(index.size + 1, "int64"), 0, ones(bags, "int64"), offsets)
    return cumsum(begun, 0)[:-1] - 1


cdef object steps(index, bags):
    """The positions at which the bags 1, 2, ... begin, if all have the same size."""
    return cumsum(zeros(max(bags - 1, 0), "int64") + index.shape[1], 0)


cdef Operator EMBEDDING = Embedding(), EMBEDDING_BAG = EmbeddingBag()
OPERATORS = {o.name: o for o in (EMBEDDING, EMBEDDING_BAG)}


# ---- the functions ---------------------------------------------------------------------------------------------------

cdef object read_padding(str name, padding_idx, Tensor weight):
    """The row of padding_idx, not negative, or None."""
    if padding_idx is None or weight.layout.ndim != 2: return None      # (infer refuses that weight)
    try: at = operator.index(padding_idx)
    except TypeError: raise TypeError(f"{name}: padding_idx must be an integer or None, got {described(padding_idx)}") \
        from None
    rows = weight.layout.shape[0]
    if not -rows <= at < rows:
        raise ValueError(f"{name}: padding_idx {at} is out of range for a weight of {rows} rows")
    return at + rows if at < 0 else at


cdef bint asks_for_rows(Tensor weight) except -1:
    """Whether the gradient of `weight` was asked for with attach_grad(stype="row_sparse")."""
    return is_variable(weight) and seen_leaf(<Leaf>node_of(weight)).sparse


def embedding(indices: Data, weight: Data, padding_idx: int | None = None, sparse: bool = False) -> Tensor:
    """The rows of `weight` (rows, columns) at `indices`, integers of any shape; negative ones count from the end. The
    result has the shape of the indices and one more dimension, the columns, and the dtype of the weight.

    No gradient flows to the row `padding_idx`. With `sparse`, or for a variable with attach_grad(stype="row_sparse"),
    the gradient of a variable is a GradientSlice with a row for each index, so backward and Sgd touch only these rows.
    It is added to a .grad that is a tensor, so the variable should have .grad None at first, as after
    requires_grad_(). Under create_graph, and for a weight that is a result, the gradient is a tensor. Backward saves
    only the indices. Raises IndexError for an index out of range."""
    cdef Tensor w = ensure_tensor(weight)
    return apply2(EMBEDDING, index_tensor(indices, None), w,
                  Lookup(read_padding("embedding", padding_idx, w), sparse or asks_for_rows(w)))


def embedding_bag(indices: Data, weight: Data, offsets: Data | None = None,
                  mode: Literal["sum", "mean", "max"] = "mean", sparse: bool = False,
                  per_sample_weights: Data | None = None, padding_idx: int | None = None) -> Tensor:
    """The sum, the mean or the maxima of the rows of `weight` (rows, columns) in each bag of indices: (bags, columns).

    indices: integers, (bags, n); or (n,) with `offsets`, the position at which each bag begins, the first of which is
    0. per_sample_weights: a factor for each index, of the indices' shape, for the sum. padding_idx: indices of this row
    count as absent. An empty bag gives zeros. The rows of a bag are never stored together: backward saves the indices
    in the smallest dtype and the offsets; for the maxima it saves the row of each element instead; for
    per_sample_weights it saves them and the weight. A maximum that occurs more than once has its gradient at the first
    of its rows. `sparse` is that of embedding(), for sum and mean. Raises IndexError for an index out of range."""
    cdef Tensor i = index_tensor(indices, None), w = ensure_tensor(weight), at, s = None
    cdef list inputs = [i, w]
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"embedding_bag: mode must be one of {', '.join(MODES)}; got {described(mode)}")
    if not is_real(w.dtype):
        raise TypeError(f"embedding_bag: the weight is {DTYPES[w.dtype]}; wanted a floating dtype")
    if i.layout.ndim not in (1, 2) or (i.layout.ndim == 1) != (offsets is not None):
        raise ValueError(f"embedding_bag: the indices are {i.shape}; wanted (bags, n) without offsets, or (n,) with "
                         f"offsets")
    if offsets is not None:
        at = index_tensor(offsets, None)
        if at.layout.ndim != 1: raise ValueError(f"embedding_bag: the offsets are {at.shape}; wanted (bags,)")
        inputs.append(at if at.layout.dense else at.copy())
    if per_sample_weights is not None:
        s = ensure_tensor(per_sample_weights)
        if mode != "sum": raise ValueError(f"embedding_bag: per_sample_weights need mode \"sum\", got {mode!r}")
        if s.dtype != w.dtype or not lay.same_shape(s.layout, i.layout):
            raise ValueError(f"embedding_bag: per_sample_weights are {DTYPES[s.dtype]} of shape {s.shape}; wanted one "
                             f"for each index, {DTYPES[w.dtype]} of shape {i.shape}")
        inputs.append(s)
    rows = sparse or asks_for_rows(w)
    if sparse and mode == "max": raise ValueError("embedding_bag: the gradient of a maximum is dense; omit sparse")
    return apply_list(EMBEDDING_BAG, inputs, Bagged(mode, offsets is not None, s is not None, read_padding(
        "embedding_bag", padding_idx, w), rows and mode != "max"))


def embedding_bag_weighted(indices: Data, weight: Data, per_sample_weights: Data, mode: str = "sum",
                           sparse: bool = False, padding_idx: int | None = None) -> Tensor:
    """embedding_bag() without offsets and with a factor for each index."""
    return embedding_bag(indices, weight, None, mode, sparse, per_sample_weights, padding_idx)
