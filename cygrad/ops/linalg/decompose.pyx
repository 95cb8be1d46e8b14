"""Decompositions of matrices: cholesky and qr, each for a batch of matrices in the last two dimensions.

cygrad's own routines compute them, in workspace that is declared. Backward saves the factors and not the matrix.
Sources of the gradients: I. Murray, Differentiation of the Cholesky decomposition (2016), arXiv 1602.07527; S. F.
Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions with application in optimum experimental
design (2010)."""

cimport cython

from collections import namedtuple

from libc.stdint cimport uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, output_bit, saved
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.slots cimport OWN
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.linalg cimport matrices
from cygrad.kernels.array cimport Array, Layout, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.linalg.reflectors cimport qr_bytes
from cygrad.kernels.linalg.matrices cimport Task, begin_task, each_matrix, threads_over
from cygrad.ops.linalg.matrices cimport OfMatrices, add_result, matrices_in, set_room, set_target, work_of

from cygrad.core.errors import described
from cygrad.core.interop.creation import zeros
from cygrad.ops.shapes.join import concat, tril
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.shapes.shape import matrix_transpose
from cygrad.ops.linalg.solve import solve_triangular


# ---- Cholesky --------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Half(Attributes):
    """The attributes of cholesky, eigh and eigvalsh: whether the upper triangle is meant."""
    def __cinit__(self, bint upper=False):
        self.upper = upper

    cdef dict keywords(self):
        """cholesky() takes `upper`, and eigh() and eigvalsh() take `UPLO`."""
        return {"upper": self.upper, "UPLO": "U" if self.upper else "L"}


cdef class Cholesky(OfMatrices):
    """y = L with x = L L'        dx = L^-T s L^-1, s = (p + p') / 2, p = tril(L' g), its diagonal halved

    With `upper`, y is L'. dx is symmetric. It is computed in its own memory, over a copy of g."""
    traits = "promotes promotes_to_float fused differentiable"
    reads = "y"

    cdef int infer(self, Call* c) except -1 nogil:
        self.describe(c, True)
        c.y[0].layout, c.y[0].dtype = lay.dense_like(c.x[0].layout), c.x[0].dtype
        c.work = matrices_in(c.x[0].layout) * work_of(c.x[0].layout)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t n = c.x[0].layout.shape[c.x[0].layout.ndim - 1]
        cdef Task t
        begin_task(&t, c.y[0].dtype, n, n)
        if c.y[0].layout.size == 0: return 0
        gather(c.y[0].data, &c.x[0], 0, c.y[0].layout.size)
        t.upper = (<Half>c.attributes).upper
        set_target(&t, 0, &c.y[0], n * n)
        return self.compute(matrices.cholesky, &t, c)

    cdef object failure(self, int info):
        return f" is not positive definite: its leading minor of order {info} is not positive"

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        cdef Array y = saved(b, OWN)
        cdef Py_ssize_t n = b.y.shape[b.y.ndim - 1]
        b.work = max(b.work, matrices_in(b.y) * work_of(b.y))
        if not y.layout.dense:
            s.workspace_bytes = n * n * itemsize(b.dtype) * max(1, threads_over(matrices_in(b.y), work_of(b.y)))
        if b.g[0].layout.dense: s.donated_gradients = 1

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array y = saved(b, OWN)
        cdef Py_ssize_t n = b.y.shape[b.y.ndim - 1], count = matrices_in(b.y)
        cdef Task t
        if b.y.size == 0: return 0
        begin_task(&t, b.dtype, n, n)
        if b.dx[0].data != b.g[0].data: gather(b.dx[0].data, &b.g[0], 0, b.y.size)
        t.a, t.upper, t.workspace = &y, (<Half>b.attributes).upper, b.workspace
        t.room = 0 if y.layout.dense else n * n * itemsize(b.dtype)
        set_target(&t, 0, &b.dx[0], n * n)
        return each_matrix(matrices.cholesky_grad, &t, count, work_of(b.y), b.stages[stage].workspace_bytes)

    cdef object formula(self, c, int i, g):
        cdef bint upper = (<Half>c.attributes).upper
        L, G = c.output(0), g
        if upper: L, G = matrix_transpose(L), matrix_transpose(G)
        p = matmul(matrix_transpose(L), tril(G))
        s = (tril(p) + matrix_transpose(tril(p, -1))) * 0.5
        return divided(divided(s, L, False, False), L, True, True)


cdef object divided(x, L, bint left, bint transposed):
    """x L^-1 for lower triangular L, or with `left` and `transposed` L^-T x."""
    return solve_triangular(matrix_transpose(L) if transposed else L, x, upper=transposed, left=left)


# ---- QR --------------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Whole(Attributes):
    """The attributes of qr and svd: whether the orthogonal matrices are square."""
    def __cinit__(self, bint full=False):
        self.full = full

    cdef dict keywords(self):
        """qr() takes `mode`, and svd() takes `full_matrices`."""
        return {"mode": "complete" if self.full else "reduced", "full_matrices": self.full}


cdef int refuse_derivative(const Layout* x, str message) except -1 with gil:
    raise ValueError(message.format(lay.shape_tuple(x)))


cdef class QR(OfMatrices):
    """x = q r, q orthogonal, r upper triangular        dx = (dq + q sym(r dr' - dq' q)) r^-T

    sym mirrors the lower triangle. If x has more columns than rows, the first ones are decomposed and the others are r
    = q' x. Backward saves q and r, and for such matrices x."""
    outputs = "q r"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef bint full = (<Whole>c.attributes).full
        cdef Py_ssize_t m, n, k
        self.describe(c, False)
        m, n = x.shape[x.ndim - 2], x.shape[x.ndim - 1]
        if c.wanted and full and m > n:
            refuse_derivative(x, "qr: x is {}, which has more rows than columns, and with mode='complete' q is not "
                                 "unique and has no derivative; use mode='reduced' or x.detach()")
        k = m if full else min(m, n)
        add_result(c, 0, c.x[0].dtype, 2, m, k)
        add_result(c, 1, c.x[0].dtype, 2, k, n)
        return set_room(c, matrices_in(x), qr_bytes(c.x[0].dtype, m, n, k))

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t m = x.shape[x.ndim - 2], n = x.shape[x.ndim - 1]
        cdef Py_ssize_t k = m if (<Whole>c.attributes).full else min(m, n)
        cdef Task t
        begin_task(&t, c.x[0].dtype, m, n)
        t.full, t.room = (<Whole>c.attributes).full, qr_bytes(t.dtype, m, n, k)
        set_target(&t, 0, &c.y[0], m * k)
        set_target(&t, 1, &c.y[1], k * n)
        return self.compute(matrices.qr, &t, c)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef const Layout* x
        if c.x == NULL: return 1 | output_bit(0) | output_bit(1)     # (the shape is not known)
        x = c.x[0].layout
        return output_bit(0) | output_bit(1) | (1 if x.shape[x.ndim - 1] > x.shape[x.ndim - 2] else 0)

    cdef object formula(self, c, int i, g):
        q, r = c.output(0), c.output(1)
        dq, dr = g
        m, n = q.shape[-2], r.shape[-1]
        rest = None
        if n > m:
            first, rest = r[..., :m], c.input(0)[..., m:]
            if dr is not None:                      # r[:, m:] = q' x[:, m:]
                extra = matmul(rest, matrix_transpose(dr[..., m:]))
                dq = extra if dq is None else dq + extra
                rest, dr = matmul(q, dr[..., m:]), dr[..., :m]
            else: rest = zeros(rest.shape, q.dtype)
            r = first
        s = None
        if dr is not None: s = matmul(r, matrix_transpose(dr))
        if dq is not None:
            turn = matmul(matrix_transpose(dq), q)
            s = -turn if s is None else s - turn
        s = matmul(q, tril(s) + matrix_transpose(tril(s, -1)))
        if dq is not None: s = s + dq
        dx = divided(s, matrix_transpose(r), False, False)
        return dx if rest is None else concat([dx, rest], -1)


cdef Operator CHOLESKY = Cholesky(), QR_ = QR()
OPERATORS = {o.name: o for o in (CHOLESKY, QR_)}

QRResult = namedtuple("QRResult", ("Q", "R"), module=__name__)
QRResult.__annotations__ = dict.fromkeys(QRResult._fields, Tensor)
QRResult.__doc__ = "The result of qr: an orthogonal matrix Q and a triangular matrix R."


def cholesky(x: Data, upper: bool = False) -> Tensor:
    """The Cholesky factor L of each symmetric positive definite matrix of `x` (..., n, n): L is lower triangular and
    x = L L'. With `upper`, the result is L'. Only that triangle of x is read; the gradient is symmetric. float32 and
    float64. Raises ValueError unless the matrices are square, numpy.linalg.LinAlgError for one that is not positive
    definite. Gradient: Murray (2016), arXiv 1602.07527."""
    return apply1(CHOLESKY, x, Half(upper))


def qr(x: Data, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """The QR decomposition of each matrix of `x` (..., m, n): a named tuple (Q, R) with x = Q R, where the columns of Q
    are orthonormal and R is upper triangular. With k = min(m, n), Q is (m, k) and R is (k, n); with mode "complete", Q
    is (m, m) and R is (m, n). The gradient needs linearly independent columns (the first m of them if n > m), else it
    raises numpy.linalg.LinAlgError. A complete Q has no derivative if m > n, so recording it raises ValueError.
    Gradient: Walter and Lehmann (2010)."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {described(mode)}")
    return QRResult(*apply1(QR_, x, Whole(mode == "complete")))
