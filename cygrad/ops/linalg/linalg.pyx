"""Matrix products: matmul (batched, with broadcasting) and linear (x W' + b and an optional activation).

gemm() computes the products. It reads a matrix in place if one of its two strides is 1 (a transpose is a flag). Any
other matrix is packed into the workspace first: matmul packs one matrix of a batch at a time, linear one strip of
rows."""

cimport cython

import math

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport (
    ADDING, OVER_GRAD, SIGNS_ALONE, BackwardCall, Call, Operator, Stage, add_stage, adds, computes, factor, output_bit,
    reads_temporary, saved, saved_bits, temporary,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply2, apply_list
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, is_real, itemsize
from cygrad.kernels.bits cimport mask
from cygrad.kernels.linalg cimport blas
from cygrad.kernels.linalg.blas cimport biased_gemm, check_sizes, scaled_gemm
from cygrad.kernels.linalg.panels cimport Batch, factors_of, multiply_batch
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reductions.reduce cimport sum_to
from cygrad.ops.shapes.shape cimport with_dimensions, without_dimensions

import numpy as np

from cygrad.core.errors import described
from cygrad.ops.elementwise.elementwise import square
from cygrad.ops.elementwise.functions import relu_gradient
from cygrad.ops.reductions.reduce import sum_to as sum_to_shape
from cygrad.ops.shapes.shape import reshape, transpose


cdef enum:
    STRIP = 16 << 10        # bytes of rows that linear packs at a time,
    STRIP_ROWS = 256        # but at least this many rows: products of fewer rows are slower

cdef struct Matrix:         # an operand of gemm(): row-major, or the transpose of a row-major matrix
    const char* data
    Py_ssize_t ld
    bint transposed


cdef bint fits(const Layout* l) noexcept nogil:
    """Whether gemm() can read the last two dimensions in place."""
    cdef Py_ssize_t rows = l.shape[l.ndim - 2], columns = l.shape[l.ndim - 1]
    cdef Py_ssize_t down = l.strides[l.ndim - 2], right = l.strides[l.ndim - 1]
    return ((right == 1 or columns == 1) and (down >= max(columns, 1) or rows == 1)
            or (down == 1 or rows == 1) and (right >= max(rows, 1) or columns == 1))


cdef size_t capacity(const Array* a) noexcept nogil:
    """Bytes to pack one matrix of `a`; 0 if gemm() can read it in place."""
    if fits(a.layout): return 0
    return a.layout.shape[a.layout.ndim - 2] * a.layout.shape[a.layout.ndim - 1] * itemsize(a.dtype)


cdef Matrix matrix(const Array* a, Py_ssize_t offset, char* workspace) noexcept nogil:
    """The matrix at `offset` of `a`, packed into the workspace if gemm() cannot read it in place."""
    cdef const Layout* l = a.layout
    cdef Py_ssize_t rows = l.shape[l.ndim - 2], columns = l.shape[l.ndim - 1]
    cdef Py_ssize_t down = l.strides[l.ndim - 2], right = l.strides[l.ndim - 1]
    cdef Matrix m
    cdef Layout one = l[0]
    cdef Array piece = a[0]
    m.data = a.data + offset * itemsize(a.dtype)
    m.transposed = False
    if (right == 1 or columns == 1) and (down >= max(columns, 1) or rows == 1):
        m.ld = down if rows > 1 else max(columns, 1)
    elif fits(l):
        m.ld = right if columns > 1 else max(rows, 1)
        m.transposed = True
    else:
        one.ndim, one.shape, one.strides = 2, l.shape + l.ndim - 2, l.strides + l.ndim - 2
        piece.layout, piece.data = &one, <char*>m.data
        gather(workspace, &piece, 0, rows * columns)
        m.data, m.ld = workspace, columns
    return m


# ---- matmul ----------------------------------------------------------------------------------------------------------

cdef inline Py_ssize_t work_of(const Layout* y, Py_ssize_t inner) noexcept nogil:
    """The work of a product, in elements of an elementwise operation. One element counts as eight multiplications."""
    return y.size // 8 * inner


cdef class MatMul(Operator):
    """z = x y        dx = g y'        dy = x' g        (over the last two dimensions, the others broadcast)"""
    called, traits = "matmul", "promotes fused differentiable"
    operands, reads = "x y", {"x": "y", "y": "x"}
    lanes, tangent = "broadcasting", "bilinear"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* y = c.x[1].layout
        cdef Layout bx = x[0], by = y[0]
        cdef Layout* batch
        cdef int d
        if x.shape[x.ndim - 1] != y.shape[y.ndim - 2]:
            with gil:
                raise ValueError(f"matmul: x is {lay.shape_tuple(x)} but y is {lay.shape_tuple(y)}; the inner sizes "
                                 f"{x.shape[x.ndim - 1]} and {y.shape[y.ndim - 2]} must agree")
        c.y[0].dtype = c.x[0].dtype
        if x.ndim == 2 and y.ndim == 2:
            shape[0], shape[1] = x.shape[0], y.shape[1]
            c.y[0].layout = lay.dense(2, shape)
        else:
            bx.ndim -= 2
            by.ndim -= 2
            bx.dense = by.dense = False             # broadcast() reads only their shapes
            batch = lay.broadcast("matmul", &bx, &by)
            for d in range(batch.ndim): shape[d] = batch.shape[d]
            shape[batch.ndim], shape[batch.ndim + 1] = x.shape[x.ndim - 2], y.shape[y.ndim - 1]
            d = batch.ndim
            lay.decref(batch)
            c.y[0].layout = lay.dense(d + 2, shape)
        if is_real(c.x[0].dtype):
            check_sizes(x.shape[x.ndim - 2], y.shape[y.ndim - 1], x.shape[x.ndim - 1])
            c.workspace_bytes = capacity(&c.x[0]) + capacity(&c.x[1])
        c.work = work_of(c.y[0].layout, x.shape[x.ndim - 1])

    cdef int forward_with_gil(self, Call* c) except -1:
        """Multiply bools and integers with NumPy."""
        np.matmul(lend(&c.x[0], NULL, False), lend(&c.x[1], NULL, False), out=lend(&c.y[0], NULL, True))

    cdef int forward(self, Call* c) except -1 nogil:
        if not is_real(c.y[0].dtype): return Operator.forward(self, c)
        return products(&c.x[0], False, &c.x[1], False, &c.y[0], 1, 0, c.workspace)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """dy, then dx. gemm() can add each directly to a variable's .grad."""
        cdef Stage* s
        cdef Array other
        cdef int i
        for i in range(1, -1, -1):
            if not b.want[i]: continue
            other = saved(b, 1 - i)
            b.work = max(b.work, work_of(b.y, other.layout.shape[other.layout.ndim - (1 if i else 2)]))
            s = add_stage(b, 1 << i)
            s.writes, s.workspace_bytes, s.multiplies = ADDING, capacity(&b.g[0]) + capacity(&other), 1 << i
            if i and b.x[1].ndim == 2: s.by_rows = 2

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef int i = computes(&b.stages[stage], 1)
        cdef Array other = saved(b, 1 - i)
        cdef double alpha = factor(b, i), beta = adds(b, i)
        cdef Layout part
        cdef Py_ssize_t shape[MAX_NDIM]
        if not i: return products(&b.g[0], False, &other, True, &b.dx[0], alpha, beta, b.workspace)
        if b.x[1].ndim == 2: take_columns(&other, b.row, b.dx[1].layout.shape[0], &part, shape)
        return products(&other, True, &b.g[0], False, &b.dx[1], alpha, beta, b.workspace)

    cdef object formula(self, c, int i, g):
        return matmul(g, swapped(c.input(1))) if i == 0 else matmul(swapped(c.input(0)), g)


cdef int products(const Array* x, bint tx, const Array* y, bint ty, const Array* z, double alpha, double beta,
                  char* workspace) except -1 nogil:
    """z = alpha op(x) op(y) + beta z for each matrix of the batch; op transposes if tx (ty) is set. Batch dimensions
    that z does not have, or has with size 1, are summed."""
    cdef const Layout* lx = x.layout
    cdef const Layout* ly = y.layout
    cdef const Layout* lz = z.layout
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t steps[3][MAX_NDIM]
    cdef const Layout* l[3]
    cdef Py_ssize_t at[3]
    cdef Py_ssize_t m, n, k, total = 1
    cdef int d, i, j, nd = 0, size = itemsize(z.dtype)
    cdef bint summed = False
    cdef Matrix a, b
    cdef Batch batch
    l[0], l[1], l[2] = lx, ly, lz
    m, n = lz.shape[lz.ndim - 2], lz.shape[lz.ndim - 1]
    k = lx.shape[lx.ndim - 2] if tx else lx.shape[lx.ndim - 1]
    if lx.ndim == 2 and ly.ndim == 2 and lz.ndim == 2:
        a, b = matrix(x, 0, workspace), matrix(y, 0, workspace + capacity(x))
        return scaled_gemm(z.dtype, a.transposed != tx, b.transposed != ty, m, n, k, alpha, a.data, a.ld, b.data, b.ld,
                           beta, z.data, n)
    for i in range(3): nd = max(nd, l[i].ndim - 2)
    for d in range(nd):
        index[d] = 0
        shape[d] = 1
        for i in range(3):
            j = d - nd + l[i].ndim - 2
            steps[i][d] = 0
            if j >= 0 and l[i].shape[j] != 1:
                shape[d] = l[i].shape[j]
                steps[i][d] = l[i].strides[j]
    for d in range(nd):
        total *= shape[d]
        if shape[d] != 1 and steps[2][d] == 0: summed = True
    if (summed or total == 0) and beta == 0:
        memset(z.data, 0, lz.size * size)
        beta = 1
    if total > 1 and blas.own and not summed and fits(lx) and fits(ly):
        a, b = matrix(x, 0, NULL), matrix(y, 0, NULL)
        check_sizes(m, n, max(k, a.ld, b.ld))
        batch.p = factors_of(z.dtype, a.transposed != tx, b.transposed != ty, n, k, alpha, a.data, a.ld, b.data, b.ld,
                             beta, z.data, n)
        batch.m, batch.ndim, batch.shape = m, nd, shape
        for i in range(3): batch.steps[i] = steps[i]
        multiply_batch(&batch, total)
        return 0
    at[0] = at[1] = at[2] = 0
    for _ in range(total):
        a = matrix(x, at[0], workspace)
        b = matrix(y, at[1], workspace + capacity(x))
        scaled_gemm(z.dtype, a.transposed != tx, b.transposed != ty, m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta,
                    z.data + at[2] * size, n)
        d = nd - 1
        while d >= 0:
            index[d] += 1
            for i in range(3): at[i] += steps[i][d]
            if index[d] < shape[d]: break
            for i in range(3): at[i] -= shape[d] * steps[i][d]
            index[d] = 0
            d -= 1


# ---- linear ----------------------------------------------------------------------------------------------------------

ACTIVATIONS = ("relu", "tanh", "sigmoid")           # their derivatives can be computed from their values
cdef driver.Loop* VALUES[3]
cdef driver.Loop* DERIVATIVES[3]
VALUES[0], VALUES[1], VALUES[2] = driver.find("relu"), driver.find("tanh"), driver.find("sigmoid")
DERIVATIVES[0], DERIVATIVES[1] = driver.find("relu_gradient"), driver.find("tanh_grad")
DERIVATIVES[2] = driver.find("sigmoid_grad")


@cython.no_gc
cdef class Activation(Attributes):
    """The attributes of linear: the name of an activation, or None."""
    cdef readonly str activation
    cdef int kind                                   # its index in ACTIVATIONS; -1: none

    def __cinit__(self, activation):
        self.activation, self.kind = activation, -1 if activation is None else ACTIVATIONS.index(activation)


cdef dict BY_NAME = {name: Activation(name) for name in (None, *ACTIVATIONS)}


cdef class Linear(Operator):
    """y = a(x w' + b)        dx = s w        dw = s' x        db = sum of s over all but its last axis
    s = g a', where the derivative a' of the activation is computed from y (without an activation s = g)

    The activation is applied to the product in place."""
    lanes, tangent = "linear", "affine"
    traits = "promotes fused differentiable"
    operands, reads = "x w b?", {"x": "w", "w": "x"}

    cdef tuple call_of(self, operands, arguments):
        return range(len(operands)), Activation(arguments.get("activation"))

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* w = c.x[1].layout
        if x.ndim < 1 or w.ndim != 2 or x.shape[x.ndim - 1] != w.shape[1]:
            with gil:
                raise ValueError(f"linear: x is {lay.shape_tuple(x)} and w is {lay.shape_tuple(w)}; wanted x (..., "
                                 f"n_in) and w (n_out, n_in)")
        if c.n_in == 3 and (c.x[2].layout.ndim != 1 or c.x[2].layout.shape[0] != w.shape[0]):
            with gil:
                raise ValueError(f"linear: b is {lay.shape_tuple(c.x[2].layout)} but w is {lay.shape_tuple(w)}; wanted "
                                 f"b ({w.shape[0]},)")
        if not is_real(c.x[0].dtype):
            with gil: raise TypeError("linear takes only floating-point tensors; cast x and w with astype")
        for d in range(x.ndim - 1): shape[d] = x.shape[d]
        shape[x.ndim - 1] = w.shape[0]
        c.y[0].layout = lay.dense(x.ndim, shape)
        c.y[0].dtype = c.x[0].dtype
        check_sizes(rows_of(x), w.shape[0], w.shape[1])
        c.workspace_bytes = flat_capacity(&c.x[0]) + capacity(&c.x[1])
        if c.n_in == 3 and not c.x[2].layout.dense: c.workspace_bytes += w.shape[0] * itemsize(c.x[2].dtype)
        c.work = work_of(c.y[0].layout, w.shape[1])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Array both[2]
        cdef char* workspace = c.workspace + flat_capacity(&c.x[0])
        cdef const char* bias = NULL
        cdef int kind = (<Activation>c.attributes).kind
        if c.n_in == 3:
            bias = c.x[2].data
            if not c.x[2].layout.dense:
                bias = workspace + capacity(&c.x[1])
                gather(<char*>bias, &c.x[2], 0, c.x[2].layout.size)
        row_products(&c.x[0], &c.x[1], True, &c.y[0], bias, c.workspace, workspace)
        if kind >= 0:
            both[0] = both[1] = c.y[0]
            driver.each(VALUES[kind], both)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef uint64_t inputs = Operator.keeps(self, c, wanted)
        cdef int kind = (<Activation>c.attributes).kind
        if kind < 0: return inputs
        return inputs | output_bit(0) | (SIGNS_ALONE if kind == 0 else 0)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """With an activation, first s, a temporary that may overwrite g. Then dw, which can be added directly to .grad,
        then db, which can overwrite .grad, then dx."""
        cdef uint32_t source = 1 if (<Activation>b.attributes).kind < 0 else reads_temporary(0)
        cdef Array g = b.g[0], x, w
        cdef Stage* s
        if source != 1:
            s = add_stage(b, temporary(0))
            s.saved, s.like, s.donated_gradients = output_bit(0), b.y, 1
            g.layout = b.y
        if b.want[1]:
            x = saved(b, 0)
            b.work = max(b.work, work_of(b.y, x.layout.shape[x.layout.ndim - 1]))
            s = add_stage(b, 2)
            s.gradients, s.writes, s.workspace_bytes = source, ADDING, flat_capacity(&g) + flat_capacity(&x)
            s.multiplies = s.by_rows = 2
        if b.n_in == 3 and b.want[2]:
            s = add_stage(b, 4)
            s.gradients, s.writes = source, OVER_GRAD
        if b.want[0]:
            w = saved(b, 1)
            b.work = max(b.work, work_of(b.y, w.layout.shape[1]))
            s = add_stage(b, 1)
            s.gradients, s.workspace_bytes = source, flat_capacity(&g) + capacity(&w)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const Stage* s = &b.stages[stage]
        cdef Array g = b.temporaries[0] if s.gradients != 1 else b.g[0], other
        cdef Layout rows
        cdef Py_ssize_t dims[4]
        if s.computes == temporary(0): return times_derivative(b, (<Activation>b.attributes).kind)
        if s.computes == 4:
            if lies_flat(g.layout): g = strip(&g, 0, rows_of(g.layout), &rows, dims, NULL)
            return sum_to(&g, &b.dx[2])
        if s.computes == 2:
            other = saved(b, 0)
            return product_of_rows(&g, &other, &b.dx[1], b.row, factor(b, 1), adds(b, 1), b.workspace,
                                   b.workspace + flat_capacity(&g))
        other = saved(b, 1)
        return row_products(&g, &other, False, &b.dx[0], NULL, b.workspace, b.workspace + flat_capacity(&g))

    cdef object formula(self, c, int i, g):
        activation = c.attributes.activation
        y = None if activation is None else c.output(0)
        if activation == "relu": g = c.locally_constant(relu_gradient(g, y.detach()))
        elif activation == "tanh": g = g * (1 - square(y))
        elif activation == "sigmoid": g = g * (y * (1 - y))
        if i == 0: return matmul(g, c.input(1))
        if i == 2: return sum_to_shape(g, g.shape[-1:])
        x = c.input(0)
        n = math.prod(g.shape[:-1])                 # (-1 is ambiguous where a size is 0)
        rows = reshape(g, (n, g.shape[-1])) if g.ndim != 2 else g
        return matmul(transpose(rows), reshape(x, (n, x.shape[-1])) if x.ndim != 2 else x)


cdef int times_derivative(BackwardCall* b, int kind) except -1 nogil:
    """Write the gradient of the output times the derivative of activation `kind` to the temporary."""
    cdef const uint8_t* bits = saved_bits(b, OWN)
    cdef Array a[3]
    a[0], a[2] = b.g[0], b.temporaries[0]
    if bits == NULL:
        a[1] = saved(b, OWN)
        return driver.each(DERIVATIVES[kind], a)
    if a[0].data != a[2].data: gather(a[2].data, &a[0], 0, a[0].layout.size)
    mask(bits, a[2].dtype, a[2].layout.size, a[2].data, a[2].data)


cdef bint lies_flat(const Layout* l) noexcept nogil:
    """Whether gemm() can read `l` in place as a matrix, with all dimensions but the last as its rows."""
    return l.dense or l.ndim == 2 and fits(l)


cdef Py_ssize_t rows_at_once(const Array* a) noexcept nogil:
    """The rows of `a` for one call of gemm(), with all dimensions but the last as rows: all of them, or as many as are
    packed at a time."""
    cdef const Layout* l = a.layout
    cdef Py_ssize_t row = max(1, l.shape[l.ndim - 1] * itemsize(a.dtype))
    return rows_of(l) if lies_flat(l) else min(rows_of(l), max(<Py_ssize_t>STRIP_ROWS, STRIP // row))


cdef size_t flat_capacity(const Array* a) noexcept nogil:
    """Bytes to pack rows_at_once(a) rows; 0 if gemm() can read `a` in place."""
    return 0 if lies_flat(a.layout) else rows_at_once(a) * a.layout.shape[a.layout.ndim - 1] * itemsize(a.dtype)


cdef Array strip(const Array* a, Py_ssize_t row, Py_ssize_t n, Layout* seen, Py_ssize_t* dims,
                 char* workspace) noexcept nogil:
    """Rows row to row + n - 1 of `a`, as a matrix. `dims` receives its two sizes and two strides."""
    cdef Array m = a[0]
    cdef const Layout* l = a.layout
    dims[0], dims[1] = n, l.shape[l.ndim - 1]
    dims[2], dims[3] = dims[1], 1
    if not lies_flat(l):
        gather(workspace, a, row * dims[1], n * dims[1])
        m.data = workspace
    else:
        if not l.dense: dims[2], dims[3] = l.strides[0], l.strides[1]
        m.data += row * dims[2] * itemsize(a.dtype)
    seen[0] = l[0]
    seen.ndim, seen.offset, seen.dense = 2, 0, dims[2] == dims[1] and dims[3] == 1
    seen.size, seen.shape, seen.strides = n * dims[1], dims, dims + 2
    m.layout = seen
    return m


cdef int row_products(const Array* x, const Array* w, bint tw, const Array* y, const char* bias, char* pack,
                      char* workspace) except -1 nogil:
    """y = x op(w), + `bias` in each row unless it is NULL, one strip of rows at a time; y is dense. Rows of x are
    packed into `pack`, w into `workspace`."""
    cdef Layout seen
    cdef Py_ssize_t dims[4]
    cdef Py_ssize_t rows = rows_of(x.layout), most = rows_at_once(x), row = 0, count
    cdef Py_ssize_t k = x.layout.shape[x.layout.ndim - 1], n = y.layout.shape[y.layout.ndim - 1]
    cdef Matrix a, b = matrix(w, 0, workspace)
    cdef Array some
    if x.layout.dense:
        return biased_gemm(x.dtype, False, b.transposed != tw, rows, n, k, 1, x.data, k, b.data, b.ld, 0, y.data, n,
                           bias)
    while row < rows:
        count = min(most, rows - row)
        some = strip(x, row, count, &seen, dims, pack)
        a = matrix(&some, 0, NULL)
        biased_gemm(x.dtype, a.transposed, b.transposed != tw, count, n, k, 1, a.data, a.ld, b.data, b.ld, 0,
                    y.data + row * n * itemsize(x.dtype), n, bias)
        row += count


cdef int product_of_rows(const Array* x, const Array* y, const Array* z, Py_ssize_t row_of_z, double alpha, double beta,
                         char* pack_x, char* pack_y) except -1 nogil:
    """z = the rows from `row_of_z` on of alpha x' y, + beta z; one strip of rows of x and y at a time."""
    cdef Layout seen[2]
    cdef Py_ssize_t dims[8]
    cdef Py_ssize_t rows = rows_of(x.layout), most, row = 0, n
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Layout part
    cdef Array a, b
    if x.layout.dense and y.layout.dense:
        n, most = x.layout.shape[x.layout.ndim - 1], y.layout.shape[y.layout.ndim - 1]
        return scaled_gemm(z.dtype, True, False, z.layout.shape[0], most, rows, alpha,
                           x.data + row_of_z * itemsize(x.dtype), n, y.data, most, beta, z.data, most)
    most = min(rows_at_once(x), rows_at_once(y))
    while True:
        n = min(most, rows - row)
        a, b = strip(x, row, n, &seen[0], dims, pack_x), strip(y, row, n, &seen[1], dims + 4, pack_y)
        take_columns(&a, row_of_z, z.layout.shape[0], &part, shape)
        products(&a, True, &b, False, z, alpha, 1 if row else beta, NULL)
        row += n
        if row >= rows: return 0


cdef void take_columns(Array* a, Py_ssize_t first, Py_ssize_t n, Layout* part, Py_ssize_t* shape) noexcept nogil:
    """Let `a` be its n columns from `first` on, if these are not all of them. The layout is in `part` and `shape`."""
    cdef const Layout* l = a.layout
    cdef int last = l.ndim - 1
    if n == l.shape[last]: return
    part[0] = l[0]
    memcpy(shape, l.shape, l.ndim * sizeof(Py_ssize_t))
    shape[last] = n
    part.shape, part.dense, part.size = shape, False, l.size // l.shape[last] * n
    a.layout = part
    a.data += first * l.strides[last] * itemsize(a.dtype)


cdef Py_ssize_t rows_of(const Layout* l) noexcept nogil:
    cdef Py_ssize_t rows = 1
    for d in range(l.ndim - 1): rows *= l.shape[d]
    return rows


cdef object swapped(x):
    """`x` with its last two axes swapped."""
    n = x.ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


cdef Operator MATMUL = MatMul(), LINEAR = Linear()
OPERATORS = {o.name: o for o in (MATMUL, LINEAR)}


def matmul(x: Data, y: Data) -> Tensor:
    """The matrix product of (..., m, k) and (..., k, n), as in numpy.matmul. Leading dimensions broadcast. A vector
    counts as a row on the left and as a column on the right, and that dimension is removed from the result. Raises
    ValueError for a tensor without dimensions or if the inner sizes differ."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y), z
    cdef Py_ssize_t terms, others
    cdef bint left, right
    cdef int last
    if a.layout.ndim >= 2 and b.layout.ndim >= 2: return apply2(MATMUL, a, b, None)
    if a.layout.ndim == 0 or b.layout.ndim == 0:
        raise ValueError(f"matmul: x is {a.shape} and y is {b.shape}; each needs at least one dimension; use * to "
                         f"multiply by a number")
    left, right = a.layout.ndim == 1, b.layout.ndim == 1
    terms, others = a.layout.shape[a.layout.ndim - 1], b.layout.shape[0 if right else b.layout.ndim - 2]
    if terms != others:
        raise ValueError(f"matmul: x is {a.shape} but y is {b.shape}; the inner sizes {terms} and {others} must agree")
    if left: a = with_dimensions(a, 1)
    if right: b = with_dimensions(b, 2)
    z = apply2(MATMUL, a, b, None)
    last = z.layout.ndim - 1
    return without_dimensions(z, <uint32_t>right << last | <uint32_t>left << (last - 1))


def linear(x: Data, w: Data, b: Data | None = None, *,
           activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """x w' + b: x is (..., n_in), w is (n_out, n_in), b is (n_out,) or None; the result is (..., n_out).

    `activation` is applied to the result in the same operation, without an intermediate tensor: "relu" gives
    relu(linear(x, w, b)). Raises ValueError for another name."""
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(f"linear: activation must be 'relu', 'tanh', 'sigmoid' or None, got {described(activation)}")
    return apply_list(LINEAR, [ensure_tensor(x), ensure_tensor(w)] if b is None
                      else [ensure_tensor(x), ensure_tensor(w), ensure_tensor(b)], BY_NAME[activation])
