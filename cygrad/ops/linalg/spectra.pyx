"""Singular values and eigenvalues: svd, svdvals, eigh and eigvalsh of matrices in the last two dimensions.

LAPACK computes them, by SciPy or else NumPy, in workspace that is declared. The gradients are formulas of operators;
svd and eigh save the factors and not the matrix. Sources: M. B. Giles, An extended collection of matrix derivative
results for forward and reverse mode algorithmic differentiation (2008), 3.1 and 3.3; J. Townsend, Differentiating the
singular value decomposition (2016)."""

cimport cython

from collections import namedtuple

from libc.stdint cimport uint64_t

from numpy.linalg import LinAlgError

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator, output_bit
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.linalg cimport spectra
from cygrad.kernels.array cimport MAX_NDIM, Layout, itemsize
from cygrad.kernels.by_dtype cimport call_bint, element
from cygrad.kernels.driver cimport gather
from cygrad.kernels.linalg.matrices cimport Task, begin_task
from cygrad.ops.linalg.decompose cimport Half, Whole, refuse_derivative
from cygrad.ops.linalg.matrices cimport OfMatrices, add_result, matrices_in, set_room, set_target

from cygrad.core.errors import described
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import expand_dims, matrix_transpose


# ---- singular values -------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Spectrum(Attributes):
    """The attributes of spectral_gaps: whether the values are singular values, whether zero is allowed, and whether
    they are eigenvalues of a matrix that need not be symmetric."""
    cdef readonly bint singular
    cdef readonly bint zero
    cdef readonly bint general

    def __cinit__(self, bint singular=False, bint zero=True, bint general=False):
        self.singular, self.zero, self.general = singular, zero, general


cdef class SpectralGaps(Operator):
    """y = 1 / (w[j] - w[i]) at [i, j], 0 for i = j        dw = the sums of g y^2 over j less those over i

    With `singular`, the squares of w are subtracted, and dw is multiplied by 2 w. Equal values raise LinAlgError."""
    lanes = "leading"
    traits = "promotes promotes_to_float differentiable"
    operands = "w"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* w = c.x[0].layout
        if not 0 < w.ndim < MAX_NDIM:
            with gil: raise ValueError(f"spectral_gaps: w has shape {lay.shape_tuple(w)}; wanted (..., n)")
        for d in range(w.ndim): shape[d] = w.shape[d]
        shape[w.ndim] = w.shape[w.ndim - 1]
        c.y[0].layout, c.y[0].dtype = lay.dense(w.ndim + 1, shape), c.x[0].dtype
        c.workspace_bytes = shape[w.ndim] * itemsize(c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t n = c.x[0].layout.shape[c.x[0].layout.ndim - 1], i
        cdef bint singular = (<Spectrum>c.attributes).singular, zero = (<Spectrum>c.attributes).zero
        for i in range(c.y[0].layout.size // max(n * n, 1)):
            gather(c.workspace, &c.x[0], i * n, n)
            if not call_bint(c.y[0].dtype, spectra.gaps[float], spectra.gaps[double], <void*>c.workspace, n, singular,
                             zero, element(c.y[0].dtype, c.y[0].data, i * n * n)):
                with gil: self.refuse(c, i)

    cdef object refuse(self, Call* c, Py_ssize_t i):
        cdef Spectrum a = <Spectrum>c.attributes
        what = "singular values" if a.singular else "eigenvalues"
        where = f" (matrix {i} of the batch)" if c.x[0].layout.ndim > 1 else ""
        also = "" if a.zero else " or zero"
        name, values = ("svd", "svdvals") if a.singular else ("eig", "eigvals") if a.general else ("eigh", "eigvalsh")
        raise LinAlgError(f"{name}: {what} of x{where} are equal{also} to rounding error, so their vectors have no "
                          f"derivative; {values} has one")

    cdef tuple call_of(self, operands, arguments):
        return range(1), Spectrum(arguments.get("singular", False))

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return output_bit(0) | (1 if (<Spectrum>c.attributes).singular else 0)

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        t = g * y * y
        dw = sum(t, -1) - sum(t, -2)
        return dw * c.input(0) * 2 if c.attributes.singular else dw


cdef class SVD(OfMatrices):
    """x = u diag(s) vh        dx = u (e s + s f + ds) vh, e = skew(u' du) / gaps, f = skew(v' dv) / gaps

    skew(a) is a - a', and gaps[i, j] is s[j]^2 - s[i]^2. If x is not square, the parts of du and dv outside of the
    spans of u and v follow, divided by s. Backward saves u, s and vh."""
    outputs = reads = "u s vh"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef bint full = (<Whole>c.attributes).full
        cdef Py_ssize_t m, n, k
        cdef int dtype = c.x[0].dtype
        self.describe(c, False)
        m, n = x.shape[x.ndim - 2], x.shape[x.ndim - 1]
        k = min(m, n)
        if c.wanted and full and m != n:
            refuse_derivative(x, "svd: x is {}, which is not square, and with full_matrices=True the factors are not "
                                 "unique and have no derivative; use full_matrices=False or x.detach()")
        add_result(c, 0, dtype, 2, m, m if full else k)
        add_result(c, 1, dtype, 1, k, 0)
        add_result(c, 2, dtype, 2, n if full else k, n)
        return set_room(c, matrices_in(x), spectra.svd_room(dtype, matrices_in(x), m, n, True, full), True)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t m = x.shape[x.ndim - 2], n = x.shape[x.ndim - 1], k = min(m, n)
        cdef Task t
        begin_task(&t, c.x[0].dtype, m, n, True)
        t.full = (<Whole>c.attributes).full
        t.room = spectra.svd_room(t.dtype, matrices_in(x), m, n, True, t.full)
        set_target(&t, 0, &c.y[1], k)
        set_target(&t, 1, &c.y[0], m * (m if t.full else k))
        set_target(&t, 2, &c.y[2], n * (n if t.full else k))
        return self.compute(spectra.svd, &t, c)

    cdef object formula(self, c, int i, g):
        u, s, vh = c.output(0), c.output(1), c.output(2)
        du, ds, dvh = g
        m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
        columns, rows = expand_dims(s, -2), expand_dims(s, -1)
        left = right = core = None
        if du is not None or dvh is not None: gaps = apply1(SPECTRAL_GAPS, s, Spectrum(True, m == n))
        if du is not None:
            turn = matmul(matrix_transpose(u), du)
            core = (turn - matrix_transpose(turn)) * gaps * columns
            if m > k: left = (du - matmul(u, turn)) / columns
        if dvh is not None:
            turn = matmul(vh, matrix_transpose(dvh))
            f = (turn - matrix_transpose(turn)) * gaps * rows
            core = f if core is None else core + f
            if n > k: right = matmul(u / columns, dvh - matmul(matrix_transpose(turn), vh))
        if core is not None: left = matmul(u, core) if left is None else left + matmul(u, core)
        if ds is not None:
            scaled = u * expand_dims(ds, -2)
            left = scaled if left is None else left + scaled
        dx = matmul(left, vh)
        return dx if right is None else dx + right


cdef class SVDVals(OfMatrices):
    """s = the singular values of x        dx = u diag(g) vh, u and vh of the svd of x, which backward computes"""
    reads = "x"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t m, n
        self.describe(c, False)
        m, n = x.shape[x.ndim - 2], x.shape[x.ndim - 1]
        add_result(c, 0, c.x[0].dtype, 1, min(m, n), 0)
        return set_room(c, matrices_in(x), spectra.svd_room(c.x[0].dtype, matrices_in(x), m, n, False, False),
                        True)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t m = x.shape[x.ndim - 2], n = x.shape[x.ndim - 1]
        cdef Task t
        begin_task(&t, c.x[0].dtype, m, n, True)
        t.room = spectra.svd_room(t.dtype, matrices_in(x), m, n, False, False)
        set_target(&t, 0, &c.y[0], min(m, n))
        return self.compute(spectra.svd, &t, c)

    cdef object formula(self, c, int i, g):
        u, _, vh = apply1(SVD_, c.input(0), Whole(False))
        return matmul(u * expand_dims(g, -2), vh)


# ---- eigenvalues -----------------------------------------------------------------------------------------------------

cdef class EigH(OfMatrices):
    """x = v diag(w) v'        dx = v (dw + skew(v' dv) / (2 gaps)) v', gaps[i, j] = w[j] - w[i]

    skew(a) is a - a'. dx is symmetric. Backward saves w and v."""
    called = "eigh"
    outputs = reads = "w v"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t n
        self.describe(c, True)
        n = x.shape[x.ndim - 1]
        add_result(c, 0, c.x[0].dtype, 1, n, 0)
        add_result(c, 1, c.x[0].dtype, 2, n, n)
        return set_room(c, matrices_in(x), spectra.eigh_room(c.x[0].dtype, matrices_in(x), n, True), True)

    cdef int forward(self, Call* c) except -1 nogil:
        return eigenvalues(self, c, True)

    cdef object formula(self, c, int i, g):
        w, v = c.output(0), c.output(1)
        dw, dv = g
        left = None
        if dw is not None: left = v * expand_dims(dw, -2)
        if dv is not None:
            turn = matmul(matrix_transpose(v), dv)
            gaps = apply1(SPECTRAL_GAPS, w, Spectrum())
            core = matmul(v, (turn - matrix_transpose(turn)) * gaps * 0.5)
            left = core if left is None else left + core
        return matmul(left, matrix_transpose(v))


cdef class EigValsH(OfMatrices):
    """w = the eigenvalues of x        dx = v diag(g) v', v of the eigh of x, which backward computes"""
    called = "eigvalsh"
    reads = "x"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        self.describe(c, True)
        add_result(c, 0, c.x[0].dtype, 1, x.shape[x.ndim - 1], 0)
        return set_room(c, matrices_in(x), spectra.eigh_room(c.x[0].dtype, matrices_in(x), x.shape[x.ndim - 1], False),
                        True)

    cdef int forward(self, Call* c) except -1 nogil:
        return eigenvalues(self, c, False)

    cdef object formula(self, c, int i, g):
        _, v = apply1(EIGH, c.input(0), c.attributes)
        return matmul(v * expand_dims(g, -2), matrix_transpose(v))


cdef int eigenvalues(OfMatrices op, Call* c, bint vectors) except -1 nogil:
    cdef Py_ssize_t n = c.x[0].layout.shape[c.x[0].layout.ndim - 1]
    cdef Task t
    if c.x[0].layout.size == 0: return 0
    begin_task(&t, c.x[0].dtype, n, n, True)
    t.upper = (<Half>c.attributes).upper
    t.room = spectra.eigh_room(t.dtype, matrices_in(c.x[0].layout), n, vectors)
    set_target(&t, 0, &c.y[0], n)
    if vectors: set_target(&t, 1, &c.y[1], n * n)
    return op.compute(spectra.eigh, &t, c)


cdef Operator SPECTRAL_GAPS = SpectralGaps(), SVD_ = SVD(), SVDVALS = SVDVals(), EIGH = EigH(), EIGVALSH = EigValsH()
OPERATORS = {o.name: o for o in (SPECTRAL_GAPS, SVD_, SVDVALS, EIGH, EIGVALSH)}

SVDResult = namedtuple("SVDResult", ("U", "S", "Vh"), module=__name__)
EighResult = namedtuple("EighResult", ("eigenvalues", "eigenvectors"), module=__name__)
SVDResult.__annotations__ = dict.fromkeys(SVDResult._fields, Tensor)
SVDResult.__doc__ = "The result of svd: U, the singular values S in descending order, and Vh."
EighResult.__annotations__ = dict.fromkeys(EighResult._fields, Tensor)
EighResult.__doc__ = "The result of eigh: the eigenvalues in ascending order, and the eigenvectors as columns."


def svd(x: Data, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition of each matrix of `x` (..., m, n): a named tuple (U, S, Vh) with x = U diag(S)
    Vh and S in descending order. With k = min(m, n), U is (m, m), S is (k,) and Vh is (n, n); without `full_matrices`,
    U is (m, k) and Vh is (k, n). The gradients of U and Vh need distinct singular values (and if m != n, none that is
    zero), else they raise numpy.linalg.LinAlgError; that of S does not. Full matrices have no derivative if m != n, so
    recording them raises ValueError. The signs of the vectors are LAPACK's. Gradient: Giles (2008), 3.3; Townsend
    (2016)."""
    return SVDResult(*apply1(SVD_, x, Whole(full_matrices)))


def svdvals(x: Data) -> Tensor:
    """The singular values of each matrix of `x` (..., m, n), in descending order: (..., min(m, n)). The gradient of a
    repeated value is one of its subgradients; second derivatives need distinct values. Gradient: Giles (2008), 3.3."""
    return apply1(SVDVALS, x, None)


cdef Half read_triangle(str name, UPLO):
    if UPLO not in ("L", "U"): raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {described(UPLO)}")
    return Half(UPLO == "U")


def eigh(x: Data, UPLO: Literal["L", "U"] = "L") -> EighResult:
    """The eigenvalues, in ascending order, and orthonormal eigenvectors of each symmetric matrix of `x` (..., n, n): a
    named tuple of (..., n) and (..., n, n), with a vector in each column. Only the lower triangle is read (with UPLO
    "U", the upper one); the gradient is symmetric. The gradient of the vectors needs distinct eigenvalues, else it
    raises numpy.linalg.LinAlgError; that of the values does not. The signs of the vectors are LAPACK's. Gradient: Giles
    (2008), 3.1."""
    return EighResult(*apply1(EIGH, x, read_triangle("eigh", UPLO)))


def eigvalsh(x: Data, UPLO: Literal["L", "U"] = "L") -> Tensor:
    """The eigenvalues of each symmetric matrix of `x` (..., n, n), in ascending order. Only the lower triangle is read
    (with UPLO "U", the upper one); the gradient is symmetric. Second derivatives need distinct eigenvalues. Gradient:
    Giles (2008), 3.1."""
    return apply1(EIGVALSH, x, read_triangle("eigvalsh", UPLO))


def spectral_gaps(w: Data, singular: bool = False, zero: bool = True, general: bool = False) -> Tensor:
    """1 / (w[j] - w[i]) for all pairs of eigenvalues, or of the squares of singular values; 0 for i = j. Raises
    numpy.linalg.LinAlgError for equal values, or without `zero` for a value of zero; `general` says that it names eig.
    """
    return apply1(SPECTRAL_GAPS, w, Spectrum(singular, zero, general))
