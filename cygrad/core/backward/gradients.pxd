"""A gradient on its way through a backward pass, and all that is done with one: take, share, drop, add, show as a
tensor. A new kind is added here; what cannot take one refuses it by name."""

from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t

from cygrad.core.graph.tensor cimport Tensor, sole
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array, Layout, itemsize

cdef enum GradientKind:
    NO_GRADIENT             # none has come, which is not a gradient of zero
    DENSE                   # a buffer (one hold and one gradient role on it) and a layout (one count on it)
    TENSOR                  # a counted Tensor with its graph: under create_graph all gradients are of this kind
    ROWS                    # row-sparse: a counted object with indices and values; no operator makes one yet

cdef union GradientContent:
    Buffer* buffer          # DENSE
    void* pyobject          # TENSOR, ROWS

cdef struct Gradient:       # a kind of 0 is an empty one; the other fields have no meaning then
    GradientContent held
    Layout* layout          # DENSE
    uint8_t kind            # a GradientKind
    uint8_t dtype           # DENSE
    uint8_t lent            # the sum of an input's gradient: the running stage adds to it (core/backward/turn.pyx)


cdef inline void set_dense(Gradient* g, Buffer* b, Layout* layout, int dtype) noexcept:
    """Let `g` be what a layout shows of a buffer. It takes over the hold, the role and the count."""
    g.held.buffer, g.layout, g.kind, g.dtype, g.lent = b, layout, DENSE, dtype, False

cdef inline void set_tensor(Gradient* g, Tensor t) noexcept:
    """Let `g` be a tensor with its graph."""
    Py_INCREF(t)
    g.held.pyobject, g.layout, g.kind, g.lent = <void*>t, NULL, TENSOR, False

cdef inline Tensor tensor_in(const Gradient* g):
    """The tensor that a TENSOR holds."""
    return <Tensor>g.held.pyobject

cdef inline Array elements_of(const Gradient* g) noexcept:
    """A DENSE one as an array, which is valid while `g` holds the buffer."""
    cdef Array a
    a.data = g.held.buffer.data + g.layout.offset * itemsize(g.dtype)
    a.layout, a.dtype = g.layout, g.dtype
    return a

cdef inline bint is_writable(const Gradient* g, const Layout* like) noexcept:
    """Whether nobody else holds the memory, so that a dense result of the shape `like` may be written over it."""
    return g.kind == DENSE and sole(g.held.buffer, g.layout, like, g.dtype)

cdef inline void take_gradient(Gradient* g, Gradient* out) noexcept:
    """Move `g` to an empty `out`."""
    out[0] = g[0]
    g.kind = NO_GRADIENT

cdef inline void drop_gradient(Gradient* g) noexcept:
    """Release what `g` holds; it is empty then."""
    if g.kind != NO_GRADIENT: release_gradient(g)

cdef void release_gradient(Gradient* g) noexcept
cdef void share_gradient(const Gradient* g, Gradient* out) noexcept
cdef int share_tensor(Tensor t, Gradient* g) except -1
cdef Gradient* new_gradients(int n) except NULL
cdef int add_gradient(Gradient* total, Gradient* g) except -1
cdef object as_tensor(const Gradient* g)
cdef Tensor into_tensor(Gradient* g)
cdef Tensor flowing_in(Tensor t)
cdef int refuse_rows(str what) except -1
