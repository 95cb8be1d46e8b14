"""Dropout."""

from cython cimport final
from libc.stdint cimport uint64_t

from cygrad.core cimport layout as lay
from cygrad.core.generator cimport Generator, draw, give_back, given_or_default, read_probability
from cygrad.core.graph cimport Backward, Call, Operator, Tensor, ensure_tensor, is_tracked
from cygrad.core.modes cimport flags
from cygrad.core.run cimport apply1
from cygrad.kernels cimport random as kernel
from cygrad.kernels.array cimport FLOAT32, Array
from cygrad.kernels.driver cimport gather

from cygrad.core.dtypes import DTYPES


@final
cdef class Dropout(Operator):
    """y = x / (1 - p) where kept, else 0        dx = g / (1 - p) where kept, else 0

    Keeps nothing: which elements are kept is drawn from the key and the counter again."""

    def __cinit__(self):
        self.name, self.promotes, self.floats = "dropout", True, True
        self.fused = self.differentiable = self.by_mode = True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward(self, Call* c) except -1:
        return masked(<object>c.attributes, &c.x[0], &c.y[0])

    cdef int backward(self, Backward b) except -1:
        cdef Array g = b.gradient(0), dx
        if not b.over_gradient(0, &dx): dx = b.make(0, b.node.layout, b.node.dtype)
        masked(b.node.attributes, &g, &dx)
        b.done_gradient(0)
        return 0

    cdef object formula(self, c, int i, g):
        return apply1(DROPOUT, g, c.attributes)


cdef int masked(tuple attributes, const Array* x, const Array* y) except -1:
    """y, dense, is x under the mask of the attributes (p, key, counter); it may be x."""
    cdef double p = attributes[0]
    cdef uint64_t key = attributes[1], counter = attributes[2]
    cdef const char* source = x.data
    if not x.layout.dense:
        gather(y.data, x, 0, y.layout.size)
        source = y.data
    return kernel.dropout(y.dtype, key, counter, p, y.layout.size, source, y.data)


@final
cdef class DropoutIdentity(Operator):
    """y = x (a view)        dx = g

    What dropout is in predict mode; recorded, so that backward can tell that the mode mattered."""

    def __cinit__(self):
        self.name = "dropout_identity"
        self.fused = self.differentiable = self.by_mode = self.views = True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.share(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        c.view = 0
        return 0

    cdef int forward(self, Call* c) except -1:
        return 0

    cdef int backward(self, Backward b) except -1:
        return b.same_gradient(0, True)

    cdef object formula(self, c, int i, g):
        return g


cdef Operator DROPOUT = Dropout(), DROPOUT_IDENTITY = DropoutIdentity()
OPERATORS = {o.name: o for o in (DROPOUT, DROPOUT_IDENTITY)}


def dropout(x, p=0.5, generator=None):
    """In train mode `x` with each element zero with probability `p` and the others divided by 1 - p, so that the mean
    stays; else `x`. The random numbers come from `generator` (None: the default one). Backward keeps nothing, it draws
    them again. Raises ValueError unless p is from 0 to 1, TypeError unless x is floating."""
    cdef Tensor t = ensure_tensor(x)
    cdef double chance = read_probability(p)
    cdef Generator source = given_or_default(generator)
    cdef uint64_t first, blocks
    if t.dtype < FLOAT32: raise TypeError(f"dropout: x is {DTYPES[t.dtype]}; wanted a floating dtype")
    if not flags().training:
        return apply1(DROPOUT_IDENTITY, t, None) if flags().recording and is_tracked(t) else t
    blocks = kernel.mask_blocks(t.layout.size)
    first = draw(source, blocks)
    try:
        return apply1(DROPOUT, t, (chance, source.key, first))
    except:
        give_back(source, first, blocks)
        raise


def dropout_with(x, p, key, counter):
    """What dropout is in train mode when its generator's state is (key, counter)."""
    return apply1(DROPOUT, x, (p, key, counter))


def dropout_identity(x):
    """What dropout is in predict mode: `x`, as a view."""
    return apply1(DROPOUT_IDENTITY, x, None)
