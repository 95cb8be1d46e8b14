"""Layouts: shapes and strides with reference counts. A function here that returns a Layout* returns a new reference.

The GIL guards the counts and the list of freed layouts, so callers hold it. `nogil` here says that a function needs no
Python object. Code that may run without the GIL uses a LocalLayout."""

from cygrad.kernels.array cimport MAX_NDIM, Layout

cdef struct LocalLayout:                            # a layout on the caller's stack, without reference counting
    Layout layout
    Py_ssize_t shape[MAX_NDIM + 2]                  # (two more for the groups of dimensions in einsum)
    Py_ssize_t strides[MAX_NDIM + 2]

cdef Layout* SCALAR                                 # the 0-d layout at offset 0; never freed

cdef Layout* blank(int ndim) except NULL nogil
cdef Layout* dense(int ndim, const Py_ssize_t* shape) except NULL nogil
cdef Layout* finish(Layout* l) noexcept nogil
cdef Layout* counted(const Layout* l) except NULL nogil
cdef Layout* dense_like(const Layout* l) except NULL nogil
cdef Layout* broadcast(str name, const Layout* x, const Layout* y) except NULL nogil
cdef Layout* expand(const Layout* x, const Layout* target) except NULL nogil
cdef Layout* from_shape(shape) except NULL
cdef void destroy(Layout* l) noexcept nogil
cdef tuple shape_tuple(const Layout* l)
cdef tuple strides_tuple(const Layout* l)
cdef list whole_sizes(shape)
cdef int read_shape(shape, Py_ssize_t* out) except -1
cdef int read_axis(axis, int ndim) except -1
cdef object read_integer(str name, str what, value, least=*, most=*, bint bools=*)
cdef Py_ssize_t read_diagonal(str name, str what, k) except? -1
cdef bint reshape_strides(const Layout* x, int ndim, const Py_ssize_t* shape, Py_ssize_t* strides) noexcept nogil


cdef inline Layout* local(LocalLayout* l) noexcept nogil:
    """The layout of a LocalLayout, at offset 0, whose ndim, shape and strides are to be filled."""
    l.layout.refs, l.layout.offset = 1, 0
    l.layout.shape, l.layout.strides = l.shape, l.strides
    return &l.layout

cdef inline Layout* incref(const Layout* l) noexcept nogil:
    (<Layout*>l).refs += 1
    return <Layout*>l

cdef inline void decref(const Layout* l) noexcept nogil:
    (<Layout*>l).refs -= 1
    if l.refs == 0: destroy(<Layout*>l)

cdef inline int repeated(const Layout* l) noexcept nogil:
    """The first dimension that repeats elements (stride 0 and more than one element), or -1."""
    cdef int d
    for d in range(l.ndim):
        if l.strides[d] == 0 and l.shape[d] > 1 and l.size: return d
    return -1

cdef inline bint same_shape(const Layout* x, const Layout* y) noexcept nogil:
    cdef int d
    if x == y: return True
    if x.ndim != y.ndim or x.size != y.size: return False
    for d in range(x.ndim):
        if x.shape[d] != y.shape[d]: return False
    return True
