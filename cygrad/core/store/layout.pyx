"""Layouts: the shape, strides and offset of a tensor in its buffer.

A result with its operand's shape shares the operand's layout, so most operations allocate no layout. Freed layouts with
at most SMALL_NDIM dimensions go to a free list."""

from cpython.number cimport PyNumber_Index

from cygrad.kernels.array cimport MAX_NDIM

from cygrad.core.errors import described

cdef extern from "Python.h" nogil:                   # (declared nogil, but every caller holds the GIL)
    void* PyMem_Malloc(size_t n)
    void PyMem_Free(void* p)

cdef enum:
    SMALL_NDIM = 4          # layouts of at most this many dimensions have the same size, and use the free list
    MAX_FREE = 256          # the capacity of the free list

cdef Layout* free_layouts[MAX_FREE]
cdef int n_free = 0

cdef Py_ssize_t MAX_SIZE = (<Py_ssize_t>1) << 48    # elements; products of sizes up to this do not overflow


cdef Layout* blank(int ndim) except NULL nogil:
    """A layout of `ndim` dimensions. The caller fills shape, strides and offset and then calls finish()."""
    global n_free
    cdef Layout* l
    cdef int capacity = SMALL_NDIM if ndim <= SMALL_NDIM else ndim
    if ndim <= SMALL_NDIM and n_free:
        n_free -= 1
        l = free_layouts[n_free]
    else:
        l = <Layout*>PyMem_Malloc(sizeof(Layout) + 2 * capacity * sizeof(Py_ssize_t))
        if l == NULL:
            with gil: raise MemoryError("no memory for a shape")
        l.shape = <Py_ssize_t*>(l + 1)
        l.strides = l.shape + capacity
    l.refs = 1
    l.ndim = ndim
    l.offset = 0
    return l


cdef void destroy(Layout* l) noexcept nogil:
    global n_free
    if l.ndim <= SMALL_NDIM and n_free < MAX_FREE:
        free_layouts[n_free] = l
        n_free += 1
    else:
        PyMem_Free(l)


cdef Layout* finish(Layout* l) noexcept nogil:
    """Compute `size` and `dense` from shape and strides."""
    cdef Py_ssize_t step = 1
    l.dense = True
    for d in range(l.ndim - 1, -1, -1):
        if l.shape[d] != 1 and l.strides[d] != step: l.dense = False
        step *= l.shape[d]
    l.size = step
    if step == 0: l.dense = True
    return l


cdef Layout* counted(const Layout* l) except NULL nogil:
    """A copy of a layout, such as a local one, that can be shared."""
    cdef Layout* y = blank(l.ndim)
    for d in range(l.ndim): y.shape[d], y.strides[d] = l.shape[d], l.strides[d]
    y.offset, y.size, y.dense = l.offset, l.size, l.dense
    return y


cdef Layout* dense(int ndim, const Py_ssize_t* shape) except NULL nogil:
    """The row-major layout of a shape. Raises ValueError if the shape has more than MAX_SIZE elements."""
    cdef Layout* l = blank(ndim)
    cdef Py_ssize_t step = 1, bound = 1, size = 1
    for d in range(ndim - 1, -1, -1):
        l.shape[d] = shape[d]
        l.strides[d] = step                         # (never 0, even if a size is 0: stride 0 means repetition)
        size *= shape[d]
        if shape[d]:
            step *= shape[d]
            if shape[d] <= MAX_SIZE // bound: bound *= shape[d]
            else:
                decref(l)
                refuse_shape(ndim, shape)
    l.size = size
    l.dense = True
    return l


cdef int refuse_shape(int ndim, const Py_ssize_t* shape) except -1 with gil:
    raise ValueError(f"a shape of {tuple([shape[i] for i in range(ndim)])} has too many elements")


cdef Layout* dense_like(const Layout* l) except NULL nogil:
    """The layout of a new result of the shape of `l`: `l` itself if it is dense and its offset is 0."""
    if l.dense and l.offset == 0: return incref(l)
    return dense(l.ndim, l.shape)


cdef Layout* broadcast(str name, const Layout* x, const Layout* y) except NULL nogil:
    """The dense layout of the shape that `x` and `y` broadcast to by NumPy's rule. Raises ValueError if they do not."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int ndim = x.ndim if x.ndim > y.ndim else y.ndim
    cdef int d, i, j
    cdef Py_ssize_t a, b
    if x == y or y.ndim == 0: return dense_like(x)
    if x.ndim == 0: return dense_like(y)
    for d in range(ndim):
        i, j = d - ndim + x.ndim, d - ndim + y.ndim
        a = x.shape[i] if i >= 0 else 1
        b = y.shape[j] if j >= 0 else 1
        if a != b and a != 1 and b != 1: refuse_broadcast(name, x, y, a, b, d - ndim)
        shape[d] = b if a == 1 else a
    if same(x, ndim, shape): return dense_like(x)
    if same(y, ndim, shape): return dense_like(y)
    return dense(ndim, shape)


cdef int refuse_broadcast(str name, const Layout* x, const Layout* y, Py_ssize_t a, Py_ssize_t b,
                          int d) except -1 with gil:
    raise ValueError(f"{name}: shapes {shape_tuple(x)} and {shape_tuple(y)} do not broadcast; sizes {a} and {b} in "
                     f"dimension {d} must agree, or one of them must be 1")


cdef inline bint same(const Layout* l, int ndim, const Py_ssize_t* shape) noexcept nogil:
    if l.ndim != ndim: return False
    for d in range(ndim):
        if l.shape[d] != shape[d]: return False
    return True


cdef Layout* expand(const Layout* x, const Layout* target) except NULL nogil:
    """The layout of `x` broadcast to the shape of `target`, with stride 0 in repeated dimensions. The caller has
    checked the shapes."""
    cdef Layout* l
    cdef int d, i
    if same_shape(x, target): return incref(x)
    l = blank(target.ndim)
    for d in range(target.ndim):
        i = d - target.ndim + x.ndim
        l.shape[d] = target.shape[d]
        l.strides[d] = x.strides[i] if i >= 0 and x.shape[i] != 1 else 0
    l.offset = x.offset
    return finish(l)


# ---- from and to Python ----------------------------------------------------------------------------------------------

cdef tuple shape_tuple(const Layout* l):
    return tuple([l.shape[d] for d in range(l.ndim)])


cdef tuple strides_tuple(const Layout* l):
    return tuple([l.strides[d] for d in range(l.ndim)])


cdef list whole_sizes(shape):
    """A shape, given as an int or a sequence of ints, as a list of Python ints. Raises TypeError for anything else."""
    try:
        return [PyNumber_Index(s) for s in (shape if type(shape) is tuple or hasattr(shape, "__iter__") else (shape,))]
    except TypeError:
        raise TypeError(f"a shape must be an int or a tuple of ints, got {described(shape)}") from None


cdef int read_shape(shape, Py_ssize_t* out) except -1:
    """Read a shape, an int or a sequence of ints that are at least 0, into `out` (MAX_NDIM long). Returns its
    length."""
    cdef int n = 0
    cdef list sizes = whole_sizes(shape)
    if len(sizes) > MAX_NDIM:
        raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, got a shape of {len(sizes)}")
    for s in sizes:
        if s < 0: raise ValueError(f"a shape cannot have negative sizes, got {tuple(sizes)}")
        if s > MAX_SIZE: raise ValueError(f"a shape of {tuple(sizes)} has too many elements")
        out[n] = s
        n += 1
    return n


cdef Layout* from_shape(shape) except NULL:
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef int n = read_shape(shape, sizes)
    return dense(n, sizes)


def check_size(n, str what):
    """Raise ValueError if n, a Python number, is more than the elements that a tensor can have. `what` begins the
    message."""
    if n > MAX_SIZE: raise ValueError(f"{what}; a tensor has at most {MAX_SIZE} elements")


cdef int read_axis(axis, int ndim) except -1:
    """An axis as a number from 0 to ndim - 1. Raises TypeError if it is not an int, IndexError if it is out of
    range."""
    try:
        a = PyNumber_Index(axis)
    except TypeError:
        raise TypeError(f"an axis must be an int, got {described(axis)}") from None
    if not -ndim <= a < ndim:
        raise IndexError(f"axis {described(a)} is out of range for a tensor of {ndim} dimensions")
    return a + ndim if a < 0 else a


cdef object read_integer(str name, str what, value, least=None, most=None, bint bools=True):
    """The argument `what` of the function `name` as a Python int. Raises TypeError if it is not an integer (or is a
    bool, unless `bools`), ValueError if it is below `least` or above `most`."""
    try:
        if isinstance(value, bool) and not bools: raise TypeError
        n = int(PyNumber_Index(value))
    except TypeError:
        raise TypeError(f"{name}: {what} must be an integer, got {described(value)}") from None
    if least is not None and n < least:
        raise ValueError(f"{name}: {what} is {described(n)}; it must be at least {least}")
    if most is not None and n > most: raise ValueError(f"{name}: {what} is {described(n)}; it must be at most {most}")
    return n


cdef Py_ssize_t read_diagonal(str name, str what, k) except? -1:
    """The number of a diagonal, limited to +-2**62, which is outside any matrix."""
    limit = 1 << 62
    n = read_integer(name, what, k)
    return limit if n > limit else -limit if n < -limit else n


cdef bint reshape_strides(const Layout* x, int ndim, const Py_ssize_t* shape, Py_ssize_t* strides) noexcept nogil:
    """Compute the strides of a view of `x` in another shape of the same size. False if there is no such view."""
    cdef Py_ssize_t block, step = 1
    cdef int i = 0, j = 0, start_i, start_j, d
    cdef bint first
    if x.dense or x.size == 0:
        for d in range(ndim - 1, -1, -1):
            strides[d] = step
            step *= shape[d]
        return True
    while i < x.ndim and j < ndim:                  # match groups of old and new dimensions of equal size
        start_i, start_j = i, j
        block, step = x.shape[i], shape[j]
        while block != step:
            if block < step:
                i += 1
                block *= x.shape[i]
            else:
                j += 1
                step *= shape[j]
        step, block, first = 0, 0, True             # the old group must be one run of equal steps (maybe of 0)
        for d in range(i, start_i - 1, -1):
            if x.shape[d] == 1: continue
            if first: step, block, first = x.strides[d], x.strides[d] * x.shape[d], False
            elif x.strides[d] != block: return False
            else: block *= x.shape[d]
        for d in range(j, start_j - 1, -1):
            strides[d] = step
            step *= shape[d]
        i += 1
        j += 1
    while j < ndim:
        strides[j] = 1
        j += 1
    return True


SCALAR = dense(0, NULL)
