"""Operators whose value is their input and whose gradient is another."""

from cython cimport final

from cygrad.core cimport layout as lay
from cygrad.core.graph cimport Backward, Call, Operator, Tensor, ensure_tensor
from cygrad.core.run cimport apply1, apply_list
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport FLOAT32, Array


@final
cdef class ScaleGradient(Operator):
    """y = x (a view)        dx = s g, s a number"""

    def __cinit__(self):
        self.name, self.fused, self.differentiable, self.views = "scale_gradient", True, True, True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.share(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        c.view = 0
        return 0

    cdef int forward(self, Call* c) except -1:
        return 0

    cdef int backward(self, Backward b) except -1:
        cdef Array a[3]
        cdef double s = b.node.attributes, bits
        if b.node.dtype == FLOAT32: (<float*>&bits)[0] = <float>s
        else: bits = s
        a[0] = b.gradient(0)
        a[1].data, a[1].layout, a[1].dtype = <char*>&bits, lay.SCALAR, b.node.dtype
        if not b.over_gradient(0, &a[2]): a[2] = b.make(0, b.node.layout, b.node.dtype)
        driver.each(MUL_LOOP, a)
        b.done_gradient(0)
        return 0

    cdef object formula(self, c, int i, g):
        return g * c.attributes


@final
cdef class LocallyConstant(Operator):
    """y = z (a view)        dz = g        dx = 0 for each x that z is locally constant in

    The inputs are z and a stand-in for each x: of those only the places in the graph matter."""

    def __cinit__(self):
        self.name, self.differentiable, self.views, self.flat = "locally_constant", True, True, True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.share(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        c.view = 0
        return 0

    cdef int forward(self, Call* c) except -1:
        return 0

    cdef object formula(self, c, int i, g):
        return g if i == 0 else None                # zeros: the engine knows, and computes nothing with them


cdef driver.Loop* MUL_LOOP = driver.find("mul")
cdef Operator SCALE_GRADIENT = ScaleGradient(), LOCALLY_CONSTANT = LocallyConstant()
OPERATORS = {o.name: o for o in (SCALE_GRADIENT, LOCALLY_CONSTANT)}


def locally_constant(z, list xs):
    """`z` as a view, connected with each of `xs`; the derivative there is zero. Formulas say c.locally_constant(z)."""
    return apply_list(LOCALLY_CONSTANT, [z, *xs], None) if xs else z


def scale_gradient(x, s):
    """`x` as a view, whose gradient is multiplied by the number `s` on its way back (0 stops it at zeros, a negative
    one turns it round). Raises TypeError if s is no number."""
    cdef Tensor t = ensure_tensor(x)
    if isinstance(s, bool) or not isinstance(s, (int, float)):
        raise TypeError(f"scale_gradient: s must be a Python number, got {type(s).__name__}")
    return apply1(SCALE_GRADIENT, t, float(s))
