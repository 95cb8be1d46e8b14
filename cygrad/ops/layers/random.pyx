"""dropout."""

from libc.stdint cimport uint64_t

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.execute.generator cimport Generator, draw_for, give_back, given_or_default, read_probability
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor, is_tracked
from cygrad.core.graph.calls cimport in_train_mode
from cygrad.core.thread_state cimport flags
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport random as kernel
from cygrad.kernels.array cimport Array, is_real
from cygrad.kernels.driver cimport gather

from cygrad.core.answers import WITHOUT
from cygrad.core.dtypes import DTYPES


cdef class Draw(Attributes):
    """The attributes of dropout: the probability of a zero, and the key and counter from which the mask is drawn."""
    cdef readonly double p
    cdef readonly uint64_t key
    cdef readonly uint64_t counter

    def __cinit__(self, double p=0, uint64_t key=0, uint64_t counter=0):
        self.p, self.key, self.counter = p, key, counter


cdef class Dropout(Operator):
    """y = x / (1 - p) where kept, else 0        dx = g / (1 - p) where kept, else 0

    Backward saves nothing: it draws the mask from the key and the counter again."""
    lanes, tangent = "leading", "linear"
    traits = "promotes promotes_to_float fused differentiable mode_dependent overwrites_gradient"
    row = "dropout_with"

    cdef int forward(self, Call* c) except -1 nogil:
        return masked(c.attributes, &c.x[0], &c.y[0])

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return masked(b.attributes, &b.g[0], &b.dx[0])

    cdef object formula(self, c, int i, g):
        return apply1(DROPOUT, g, c.attributes)


cdef int masked(const void* attributes, const Array* x, const Array* y) except -1 nogil:
    """Write x with the mask of a Draw to y. y is dense and may be x."""
    cdef double p = (<Draw>attributes).p
    cdef const char* source = x.data
    if not x.layout.dense:
        gather(y.data, x, 0, y.layout.size)
        source = y.data
    return kernel.dropout(y.dtype, (<Draw>attributes).key, (<Draw>attributes).counter, p, y.layout.size, source, y.data)


cdef class DropoutIdentity(Operator):
    """y = x (a view)        dx = g

    dropout in predict mode. It is recorded because backward must detect nodes that depend on the mode."""
    lanes, tangent = "leading", "linear"
    traits = "fused differentiable mode_dependent views gradient_is_view"
    alias = in_order = True

    cdef object formula(self, c, int i, g):
        return g


cdef Operator DROPOUT = Dropout(), DROPOUT_IDENTITY = DropoutIdentity()
OPERATORS = {o.name: o for o in (DROPOUT, DROPOUT_IDENTITY)}


def dropout(x: Data, p: float = 0.5, generator: Generator | None = None) -> Tensor:
    """In train mode, set each element of `x` to zero with probability `p` and divide the others by 1 - p, which keeps
    the expected value. In predict mode the result is `x`. The random numbers come from `generator` (None: the default
    one). Backward saves nothing; it draws them again. Raises ValueError unless p is from 0 to 1, TypeError unless x is
    floating."""
    cdef Tensor t = ensure_tensor(x)
    cdef double chance = read_probability(p)
    cdef Generator source
    cdef uint64_t blocks
    cdef Draw d
    if isinstance(generator, bool):
        raise TypeError(f"dropout: the argument after p is a generator, and not PyTorch's training: "
                        f"{WITHOUT['training']}")
    source = given_or_default(generator)
    if not is_real(t.dtype): raise TypeError(f"dropout: x is {DTYPES[t.dtype]}; wanted a floating dtype")
    if not in_train_mode(flags()):
        return apply1(DROPOUT_IDENTITY, t, None) if flags().recording and is_tracked(t) else t
    blocks = kernel.mask_blocks(t.layout.size)
    d = Draw.__new__(Draw)
    d.p = chance
    draw_for(source, blocks, d, &d.key, &d.counter)
    try:
        return apply1(DROPOUT, t, d)
    except:
        give_back(source, d.counter, blocks)
        raise


def dropout_with(x: Data, p: float, key: int, counter: int) -> Tensor:
    """dropout in train mode, with a generator whose state is (key, counter)."""
    return apply1(DROPOUT, x, Draw(read_probability(p), key, counter))


def dropout_identity(x: Data) -> Tensor:
    """dropout in predict mode: `x`, as a view."""
    return apply1(DROPOUT_IDENTITY, x, None)
