"""Linear systems: solve, solve_triangular, inv, pinv and lstsq of matrices in the last two dimensions.

LU factors, or singular values, compute them, in workspace that is declared. The gradients are formulas of operators.
They factor the matrix again instead of saving its factors, which need as much memory as the matrix. Sources: M. B.
Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation
(2008), 2.2 and 2.3; G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate (1973)."""

cimport cython

from collections import namedtuple

from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels.linalg cimport matrices, spectra
from cygrad.kernels.linalg.lapack cimport aligned
from cygrad.kernels.array cimport INT64, MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.by_dtype cimport epsilon
from cygrad.kernels.driver cimport gather
from cygrad.kernels.linalg.matrices cimport Task, begin_task, each_matrix, threads_over
from cygrad.kernels.threads cimport range_t
from cygrad.ops.linalg.matrices cimport (
    OfMatrices, add_result, matrices_in, refuse_matrix, set_room, set_target, work_of,
)

from cygrad.core.errors import as_float, described
from cygrad.core.interop.creation import zeros
from cygrad.ops.elementwise.elementwise import square
from cygrad.ops.shapes.join import tril, triu
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import expand_dims, matrix_transpose, reshape


# ---- systems ---------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class System(Attributes):
    """The attributes of solve and solve_triangular: whether the matrix is transposed; for the latter also which
    triangle it is, on which side it is, and whether its diagonal counts as ones."""
    cdef readonly bint transposed
    cdef readonly bint upper
    cdef readonly bint left
    cdef readonly bint unit

    def __cinit__(self, bint transposed=False, bint upper=False, bint left=True, bint unit=False):
        self.transposed, self.upper, self.left, self.unit = transposed, upper, left, unit

    cdef dict keywords(self):
        """Which row it is shows whether the matrix is transposed."""
        return {"upper": self.upper, "left": self.left, "unitriangular": self.unit}

    cdef System adjoint(self):
        """The same system with the matrix transposed."""
        return System(not self.transposed, self.upper, self.left, self.unit)


cdef Array spread(const Array* x, const Layout* y, LocalLayout* l) noexcept nogil:
    """`x` with its leading dimensions broadcast to those of y."""
    cdef Layout* to = lay.local(l)
    cdef Array a = x[0]
    cdef int d, j
    to.ndim = y.ndim
    for d in range(y.ndim):
        j = d - y.ndim + x.layout.ndim
        if d >= y.ndim - 2: to.shape[d] = x.layout.shape[j]
        else: to.shape[d] = y.shape[d]
        to.strides[d] = x.layout.strides[j] if j >= 0 and x.layout.shape[j] == to.shape[d] else 0
    a.layout = lay.finish(to)
    return a


cdef class LinearSolver(Operator):
    """The base of solve and solve_triangular. Inputs: matrices x (..., n, n) and right sides b, whose leading
    dimensions broadcast."""
    lanes = "aligning"
    traits = "promotes promotes_to_float differentiable joint_formula"
    operands, reads = "x b", {"x": "x y", "b": "x"}

    cdef tuple row_of(self, attributes):
        return self.name + "_transposed" * attributes.transposed, attributes.arguments()

    cdef size_t room(self, const Call* c) noexcept nogil:
        """Bytes of workspace for one thread."""
        return 0

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* b = c.x[1].layout
        cdef bint left = (<System>c.attributes).left, fits = x.ndim >= 2 and b.ndim >= 2
        cdef Layout bx, bb
        cdef Layout* batch
        cdef int d, n
        if fits: fits = x.shape[x.ndim - 1] == x.shape[x.ndim - 2] == b.shape[b.ndim - (2 if left else 1)]
        if not fits:
            with gil: raise ValueError(f"{self.name}: x is {lay.shape_tuple(x)} and b is {lay.shape_tuple(b)}; wanted "
                                       f"square matrices (..., n, n) and right sides "
                                       f"{'(..., n, k)' if left else '(..., k, n)'}")
        bx, bb = x[0], b[0]
        bx.ndim -= 2
        bb.ndim -= 2
        bx.dense = bb.dense = False                 # broadcast() reads only their shapes
        batch = lay.broadcast(self.name, &bx, &bb)
        n = batch.ndim
        for d in range(n): shape[d] = batch.shape[d]
        lay.decref(batch)
        shape[n], shape[n + 1] = b.shape[b.ndim - 2], b.shape[b.ndim - 1]
        c.y[0].layout, c.y[0].dtype = lay.dense(n + 2, shape), c.x[0].dtype
        c.work = matrices_in(c.y[0].layout) * work_of(x)
        c.workspace_bytes = self.room(c) * max(1, threads_over(matrices_in(c.y[0].layout), work_of(x)))

    cdef int compute(self, range_t f, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* y = c.y[0].layout
        cdef Py_ssize_t n = x.shape[x.ndim - 1]
        cdef bint left = (<System>c.attributes).left
        cdef LocalLayout lx, lb
        cdef Array a, b = spread(&c.x[1], y, &lb)
        cdef Task t
        if y.size == 0 and (n == 0 or matrices_in(y) == 0): return 0
        begin_task(&t, c.y[0].dtype, n, n)
        t.shared = matrices_in(x) == 1
        a = c.x[0] if t.shared or lay.same_shape(x, y) else spread(&c.x[0], y, &lx)
        if y.size: gather(c.y[0].data, &b, 0, y.size)
        t.a, t.k, t.workspace, t.room = &a, <int>y.shape[y.ndim - (1 if left else 2)], c.workspace, self.room(c)
        t.transposed, t.upper = (<System>c.attributes).transposed, (<System>c.attributes).upper
        t.left, t.unit = left, (<System>c.attributes).unit
        set_target(&t, 0, &c.y[0], n * t.k)
        each_matrix(f, &t, matrices_in(y), work_of(x), c.workspace_bytes)
        if t.failed >= 0: refuse_singular(self, t.failed, t.shared, &a, t.info)


cdef int refuse_singular(Operator op, Py_ssize_t i, bint shared, const Array* a, int pivot) except -1 with gil:
    return refuse_matrix(op, 0 if shared else i, a.layout, singular(pivot))


cdef str singular(int pivot):
    return f" is singular: pivot {pivot - 1} is zero"


cdef class Solve(LinearSolver):
    """y = x^-1 b        dx = -db y'        db = x^-T g

    Backward keeps x and, for dx, y."""
    functions = {"solve_transposed": "x b"}

    cdef size_t room(self, const Call* c) noexcept nogil:
        return matrices.factor_room(c.x[0].dtype, c.x[0].layout.shape[c.x[0].layout.ndim - 1])

    cdef int forward(self, Call* c) except -1 nogil:
        return self.compute(matrices.solve, c)

    cdef object formula(self, c, int i, g):
        cdef System s = c.attributes
        db = apply2(SOLVE, c.input(0), g, s.adjoint())
        if not c.wants(0): return None, db
        y = c.output(0)
        return matmul(-y, matrix_transpose(db)) if s.transposed else matmul(-db, matrix_transpose(y)), db


cdef class SolveTriangular(LinearSolver):
    """y = x^-1 b        dx = -the triangle of db y'        db = x^-T g        (and y = b x^-1, if x is on the right)

    Backward keeps x and, for dx, y."""
    functions = {"solve_triangular_transposed": "x b"}

    cdef size_t room(self, const Call* c) noexcept nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t n = x.shape[x.ndim - 1]
        if x.dense and (matrices_in(x) == 1 or lay.same_shape(x, c.y[0].layout)): return 0
        if x.dense and matrices_in(x) == matrices_in(c.y[0].layout): return 0
        return aligned(n * n * itemsize(c.x[0].dtype))

    cdef int forward(self, Call* c) except -1 nogil:
        return self.compute(matrices.solve_triangular, c)

    cdef object formula(self, c, int i, g):
        cdef System s = c.attributes
        db = apply2(SOLVE_TRIANGULAR, c.input(0), g, s.adjoint())
        if not c.wants(0): return None, db
        y = c.output(0)
        if s.left: dx = matmul(y, matrix_transpose(db)) if s.transposed else matmul(db, matrix_transpose(y))
        else: dx = matmul(matrix_transpose(db), y) if s.transposed else matmul(matrix_transpose(y), db)
        return -(triu(dx, s.unit) if s.upper else tril(dx, -s.unit)), db


cdef class Inv(OfMatrices):
    """y = x^-1        dx = -y' g y'"""
    reads = "y"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        self.describe(c, True)
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        return set_room(c, matrices_in(x), matrices.inverse_room(c.x[0].dtype, x.shape[x.ndim - 1]))

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t n = c.x[0].layout.shape[c.x[0].layout.ndim - 1]
        cdef Task t
        if c.y[0].layout.size == 0: return 0
        begin_task(&t, c.y[0].dtype, n, n)
        gather(c.y[0].data, &c.x[0], 0, c.y[0].layout.size)
        t.room = matrices.inverse_room(t.dtype, n)
        set_target(&t, 0, &c.y[0], n * n)
        return self.compute(matrices.inverse, &t, c)

    cdef object failure(self, int info):
        return singular(info)

    cdef object formula(self, c, int i, g):
        y = matrix_transpose(c.output(0))
        return -matmul(matmul(y, g), y)


# ---- pseudo-inverses -------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Cutoff(Attributes):
    """The attributes of pinv and lstsq: singular values of at most rcond times the largest count as zero. nan: the
    larger size of the matrix times the spacing of 1."""
    cdef readonly double rcond

    def __cinit__(self, double rcond=0):
        self.rcond = rcond

    cdef dict keywords(self):
        """pinv() takes `rtol`, and lstsq() takes `rcond`."""
        cutoff = self.rcond if self.rcond == self.rcond else None
        return {"rtol": cutoff, "rcond": cutoff}


cdef double cutoff(const Call* c) noexcept nogil:
    cdef const Layout* x = c.x[0].layout
    cdef double rcond = (<Cutoff>c.attributes).rcond
    if rcond == rcond: return rcond
    return max(x.shape[x.ndim - 2], x.shape[x.ndim - 1]) * epsilon(c.x[0].dtype)


cdef class PInv(OfMatrices):
    """y = the pseudo-inverse of x        dx = -y' g y' + (1 - x y) g' y y' + y' y g' (1 - y x)

    Backward keeps x and y. The derivative is that at constant rank."""
    reads = "x y"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        self.describe(c, False)
        add_result(c, 0, c.x[0].dtype, 2, x.shape[x.ndim - 1], x.shape[x.ndim - 2])
        return set_room(c, matrices_in(x), spectra.pinv_room(c.x[0].dtype, x.shape[x.ndim - 2], x.shape[x.ndim - 1],
                                                             0), True)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Task t
        if x.size == 0: return 0
        begin_task(&t, c.x[0].dtype, x.shape[x.ndim - 2], x.shape[x.ndim - 1], True)
        t.room, t.rcond = spectra.pinv_room(t.dtype, t.m, t.n, 0), cutoff(c)
        set_target(&t, 0, &c.y[0], x.shape[x.ndim - 2] * x.shape[x.ndim - 1])
        return self.compute(spectra.pinv, &t, c)

    cdef object formula(self, c, int i, g):
        """The products are ordered so that none is larger than x."""
        x, y = c.input(0), c.output(0)
        yt, gt = matrix_transpose(y), matrix_transpose(g)
        if x.shape[-2] >= x.shape[-1]:              # (n, n) products of y (n, m)
            a = matmul(gt, matmul(y, yt))
            b = matmul(yt, matmul(y, gt))
            return a - matmul(x, matmul(y, a)) + b - matmul(b, matmul(y, x)) - matmul(yt, matmul(g, yt))
        a = matmul(matmul(gt, y), yt)               # (m, m) products
        b = matmul(matmul(yt, y), gt)
        return a - matmul(matmul(x, y), a) + b - matmul(matmul(b, y), x) - matmul(matmul(yt, g), yt)


cdef class LstSq(Operator):
    """y = x^+ b        db = x^+' g        dx = -db y' + r (x^+ db)' + x^+' y (g - x' db)', r = b - x y

    x^+ is the pseudo-inverse. Backward keeps x, b and y, and computes x^+ again. The derivative is that at constant
    rank. Outputs: y, the rank and the singular values, of which only y has a gradient."""
    lanes = "leading"
    called, traits = "lstsq", "promotes promotes_to_float differentiable joint_formula"
    row, operands, functions, outputs = "lstsq_parts", "x b", {"lstsq": "x b"}, "y rank s"
    reads = {"x": "x b y", "b": "x"}

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* b = c.x[1].layout
        cdef bint fits = x.ndim >= 2 and x.ndim == b.ndim
        cdef Py_ssize_t m, n, k
        for d in range(x.ndim - 1 if fits else 0): fits = fits and x.shape[d] == b.shape[d]
        if not fits:
            with gil: raise ValueError(f"lstsq: x is {lay.shape_tuple(x)} and b is {lay.shape_tuple(b)}; wanted "
                                       f"matrices (..., m, n) and right sides (..., m, k) with the same leading "
                                       f"dimensions")
        m, n, k = x.shape[x.ndim - 2], x.shape[x.ndim - 1], b.shape[b.ndim - 1]
        add_result(c, 0, c.x[0].dtype, 2, n, k)
        add_result(c, 1, INT64, 0, 0, 0)
        add_result(c, 2, c.x[0].dtype, 1, min(m, n), 0)
        return set_room(c, matrices_in(x), spectra.pinv_room(c.x[0].dtype, m, n, k), True)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t k = c.x[1].layout.shape[x.ndim - 1], count = matrices_in(x)
        cdef Task t
        if x.size == 0:
            memset(c.y[0].data, 0, c.y[0].layout.size * itemsize(c.y[0].dtype))
            memset(c.y[1].data, 0, c.y[1].layout.size * itemsize(INT64))
            return 0
        begin_task(&t, c.x[0].dtype, x.shape[x.ndim - 2], x.shape[x.ndim - 1], True)
        t.k, t.rcond, t.a, t.b, t.workspace = <int>k, cutoff(c), &c.x[0], &c.x[1], c.workspace
        t.room = spectra.pinv_room(t.dtype, t.m, t.n, k)
        set_target(&t, 0, &c.y[0], t.n * k)
        set_target(&t, 1, &c.y[1], 1)
        set_target(&t, 2, &c.y[2], min(t.m, t.n))
        each_matrix(spectra.lstsq, &t, count, work_of(x), c.workspace_bytes)
        if t.failed >= 0:
            with gil: refuse_matrix(self, t.failed, x, ": the iteration did not converge; nan and inf are a usual "
                                                       "cause")

    cdef object formula(self, c, int i, g):
        x, g = c.input(0), g[0]
        inverse = apply1(PINV, x, c.attributes)
        db = matmul(matrix_transpose(inverse), g)
        if not c.wants(0): return None, db
        y = c.output(0)
        r = c.input(1) - matmul(x, y)
        dx = matmul(r, matrix_transpose(matmul(inverse, db))) - matmul(db, matrix_transpose(y))
        return dx + matmul(matmul(matrix_transpose(inverse), y),
                           matrix_transpose(g - matmul(matrix_transpose(x), db))), db


cdef Operator SOLVE = Solve(), SOLVE_TRIANGULAR = SolveTriangular(), INV = Inv(), PINV = PInv(), LSTSQ = LstSq()
OPERATORS = {o.name: o for o in (SOLVE, SOLVE_TRIANGULAR, INV, PINV, LSTSQ)}

LstsqResult = namedtuple("LstsqResult", ("x", "residuals", "rank", "s"), module=__name__)
LstsqResult.__annotations__ = dict.fromkeys(LstsqResult._fields, Tensor)
LstsqResult.__doc__ = "The result of lstsq: the solution, the sums of squared residuals, the rank, and singular values."


def solve(x: Data, b: Data) -> Tensor:
    """The solution y of x y = b, for square matrices `x` (..., n, n) and right sides `b` (..., n, k), or (n,) for one
    vector; leading dimensions broadcast. float32 and float64. Raises ValueError if the shapes do not match,
    numpy.linalg.LinAlgError for a singular matrix. Gradient: Giles (2008), 2.2.3."""
    cdef Tensor right = ensure_tensor(b)
    if right.layout.ndim != 1: return apply2(SOLVE, x, right, System())
    y = apply2(SOLVE, x, expand_dims(right, -1), System())
    return reshape(y, y.shape[:-1])


def solve_triangular(x: Data, b: Data, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The solution y of x y = b, or of y x = b if `left` is False, for triangular matrices `x` (..., n, n) and right
    sides `b` (..., n, k), or (..., k, n); leading dimensions broadcast. Only the given triangle of x is read, and with
    `unitriangular` its diagonal counts as ones. Raises ValueError if the shapes do not match, numpy.linalg.LinAlgError
    for a zero on the diagonal. Gradient: Giles (2008), 2.2.3."""
    return apply2(SOLVE_TRIANGULAR, ensure_tensor(x), b, System(False, upper, left, unitriangular))


def solve_transposed(x: Data, b: Data) -> Tensor:
    """The solution y of x' y = b, with the shapes of solve(), but no single vectors."""
    return apply2(SOLVE, ensure_tensor(x), b, System(True))


def solve_triangular_transposed(x: Data, b: Data, *, upper: bool, left: bool = True,
                                unitriangular: bool = False) -> Tensor:
    """The solution y of x' y = b, or of y x' = b if `left` is False, where x is as in solve_triangular()."""
    return apply2(SOLVE_TRIANGULAR, ensure_tensor(x), b, System(True, upper, left, unitriangular))


def inv(x: Data) -> Tensor:
    """The inverse of each matrix of `x` (..., n, n). Raises ValueError unless the matrices are square,
    numpy.linalg.LinAlgError for a singular one. To solve x y = b, solve(x, b) is faster and more accurate. Gradient:
    Giles (2008), 2.2.3."""
    return apply1(INV, x, None)


cdef Cutoff read_cutoff(str name, str argument, value):
    if value is None: return Cutoff(float("nan"))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f"{name}: {argument} must be a number of at least 0 or None, got {described(value)}")
    return Cutoff(as_float(value, f"{name}: {argument}"))


def pinv(x: Data, rtol: float | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse (..., n, m) of each matrix of `x` (..., m, n). Singular values of at most `rtol`
    times the largest count as zero; None is max(m, n) times the spacing of 1 in the dtype. The derivative is that at
    constant rank. Raises numpy.linalg.LinAlgError if the singular values do not converge. Gradient: Golub and Pereyra
    (1973)."""
    return apply1(PINV, x, read_cutoff("pinv", "rtol", rtol))


def lstsq(x: Data, b: Data, rcond: float | None = None) -> LstsqResult:
    """The least-squares solution y of x y = b of the smallest norm, for matrices `x` (..., m, n) and right sides `b`
    (..., m, k), or (m,) for one vector. A named tuple (x, residuals, rank, s): the solution, the sums of the squares of
    b - x y over m (of size 0 if m <= n, as in NumPy), the rank and the singular values of the matrix. Singular values
    of at most `rcond` times the largest count as zero; None is max(m, n) times the spacing of 1. Solution and residuals
    have gradients, those at constant rank. Raises ValueError if the shapes do not match. Gradient: Golub and Pereyra
    (1973)."""
    cdef Tensor a = ensure_tensor(x), right = ensure_tensor(b)
    cdef bint vector = right.layout.ndim == 1
    if vector: right = expand_dims(right, -1)
    y, rank, s = apply2(LSTSQ, a, right, read_cutoff("lstsq", "rcond", rcond))
    residuals = zeros((*y.shape[:-2], 0), y.dtype)
    if a.shape[-2] > a.shape[-1]: residuals = sum(square(right - matmul(a, y)), -2)
    return LstsqResult(reshape(y, y.shape[:-1]) if vector else y, residuals, rank, s.detach())


def lstsq_parts(x: Data, b: Data, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The solution, the rank and the singular values of lstsq(), without residuals, for right sides (..., m, k)."""
    return apply2(LSTSQ, ensure_tensor(x), b, read_cutoff("lstsq_parts", "rcond", rcond))
