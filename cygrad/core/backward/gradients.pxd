"""A gradient inside a backward pass, and the operations on one: take, share, drop, add, convert to a tensor. A new kind
of gradient is added here; code that does not support it raises an error that names the kind."""

from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t

from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.graph.tensor cimport Tensor, sole
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array, Layout, itemsize

cdef enum GradientKind:
    NO_GRADIENT             # none has arrived, which is not a gradient of zeros
    DENSE                   # a buffer (with one holder and one gradient role) and a layout (with one reference)
    TENSOR                  # a reference to a Tensor with its graph; create_graph makes all gradients of this kind
    ROWS                    # row-sparse: a reference to a GradientSlice; only variables have such a gradient

cdef union GradientContent:
    Buffer* buffer          # DENSE
    void* pyobject          # TENSOR, ROWS

cdef struct Gradient:       # kind 0 is NO_GRADIENT, so zeroed memory is an empty gradient
    GradientContent held
    Layout* layout          # DENSE
    uint8_t kind            # a GradientKind
    uint8_t dtype           # DENSE
    uint8_t lent            # the sum of an input's gradient: the running stage adds to it (core/backward/turn.pyx)


cdef inline void set_dense(Gradient* g, Buffer* b, Layout* layout, int dtype) noexcept:
    """Make `g` a DENSE gradient. It takes over one holder and one role of `b` and one reference to `layout`."""
    g.held.buffer, g.layout, g.kind, g.dtype, g.lent = b, layout, DENSE, dtype, False

cdef inline void set_tensor(Gradient* g, Tensor t) noexcept:
    """Make `g` a TENSOR gradient with a new reference to `t`."""
    Py_INCREF(t)
    g.held.pyobject, g.layout, g.kind, g.lent = <void*>t, NULL, TENSOR, False

cdef inline void set_rows(Gradient* g, GradientSlice s) noexcept:
    """Make `g` a ROWS gradient with a new reference to `s`."""
    Py_INCREF(s)
    g.held.pyobject, g.layout, g.kind, g.lent = <void*>s, NULL, ROWS, False

cdef inline GradientSlice rows_in(const Gradient* g):
    """The slice of a ROWS gradient."""
    return <GradientSlice>g.held.pyobject

cdef inline Tensor tensor_in(const Gradient* g):
    """The tensor of a TENSOR gradient."""
    return <Tensor>g.held.pyobject

cdef inline Array elements_of(const Gradient* g) noexcept:
    """A DENSE gradient as an array, which is valid while `g` holds the buffer."""
    cdef Array a
    a.data = g.held.buffer.data + g.layout.offset * itemsize(g.dtype)
    a.layout, a.dtype = g.layout, g.dtype
    return a

cdef inline bint is_writable(const Gradient* g, const Layout* like) noexcept:
    """Whether `g` is the only holder of its memory, so that a dense result of the shape `like` may overwrite it."""
    return g.kind == DENSE and sole(g.held.buffer, g.layout, like, g.dtype)

cdef inline void take_gradient(Gradient* g, Gradient* out) noexcept:
    """Move `g` to `out`, which is empty."""
    out[0] = g[0]
    g.kind = NO_GRADIENT

cdef inline void drop_gradient(Gradient* g) noexcept:
    """Release what `g` holds and leave it empty."""
    if g.kind != NO_GRADIENT: release_gradient(g)

cdef void release_gradient(Gradient* g) noexcept
cdef void share_gradient(const Gradient* g, Gradient* out) noexcept
cdef int share_tensor(Tensor t, Gradient* g) except -1
cdef Gradient* new_gradients(int n) except NULL
cdef int add_gradient(Gradient* total, Gradient* g) except -1
cdef object as_tensor(const Gradient* g)
cdef Tensor into_tensor(Gradient* g)
cdef Tensor flowing_in(Tensor t)
cdef int make_dense(Gradient* g) except -1
