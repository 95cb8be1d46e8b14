from cygrad.kernels.images.planes cimport Planes

cdef struct Pool:
    int dtype
    Py_ssize_t n            # images
    Py_ssize_t channels
    Py_ssize_t size[3]      # sizes of X
    Py_ssize_t out[3]       # sizes of Y
    Py_ssize_t kernel[3]    # adaptive: the size of the largest window
    Py_ssize_t stride[3]
    Py_ssize_t low[3]
    Py_ssize_t dilation[3]
    bint adaptive           # window i begins at i size / out and ends at (i + 1) size / out, rounded outwards
    bint padding_counts     # a mean divides by the elements of the window that lie in X or its padding
    Py_ssize_t divisor      # ... or by this number, if it is not 0
    Py_ssize_t taps         # the elements of a window, or 2^32 + 1 if there are more
    int width               # bytes of the place of a maximum in its window
    Planes x
    Planes y
    char* places            # dense, one for each element of Y, or NULL

cdef struct Span:           # one dimension of a window: the elements at + k step of X for first <= k < last
    Py_ssize_t at
    Py_ssize_t step
    Py_ssize_t first
    Py_ssize_t last


cdef inline Span span(const Pool* p, int d, Py_ssize_t i) noexcept nogil:
    """Dimension d of window i, without what lies outside of X."""
    cdef Span s
    s.first = 0
    if p.adaptive:
        if p.out[d] == 1:                           # without divisions, which take most of the time of small planes
            s.at, s.step, s.last = 0, 1, p.size[d]
            return s
        s.at, s.step = i * p.size[d] // p.out[d], 1
        s.last = ((i + 1) * p.size[d] + p.out[d] - 1) // p.out[d] - s.at
        return s
    s.at, s.step = i * p.stride[d] - p.low[d], p.dilation[d]
    if s.step == 1: s.first, s.last = max(<Py_ssize_t>0, -s.at), min(p.kernel[d], p.size[d] - s.at)
    else:
        if s.at < 0: s.first = (s.step - 1 - s.at) // s.step
        s.last = min(p.kernel[d], (p.size[d] - s.at + s.step - 1) // s.step)
    return s


cdef inline double count_of(const Pool* p, int d, const Span* s) noexcept nogil:
    """The elements of a window along dimension d, whose product divides the sum if there is no divisor. A float64,
    because the product of three may exceed 64 bits."""
    if p.padding_counts: return <double>(min(s.at + p.kernel[d], p.size[d] + p.low[d]) - s.at)
    return <double>max(<Py_ssize_t>0, s.last - s.first)


cdef inline Span windows_on(const Pool* p, int d, Py_ssize_t at) noexcept nogil:
    """The windows first <= i < last that may contain element `at` along dimension d. (at and step are not used.)"""
    cdef Span s
    cdef Py_ssize_t before = at + p.low[d] - p.dilation[d] * (p.kernel[d] - 1)
    s.at = s.step = 0
    if p.adaptive:
        s.first, s.last = at * p.out[d] // p.size[d], ((at + 1) * p.out[d] + p.size[d] - 1) // p.size[d]
        return s
    s.first = 0 if before <= 0 else (before + p.stride[d] - 1) // p.stride[d]
    s.last = min(p.out[d], (at + p.low[d]) // p.stride[d] + 1)
    return s


cdef inline Py_ssize_t tap(const Pool* p, int d, Py_ssize_t i, Py_ssize_t at) noexcept nogil:
    """The number of element `at` in window i along dimension d; -1 if dilation steps over it."""
    cdef Py_ssize_t n = at - i * p.size[d] // p.out[d] if p.adaptive else at + p.low[d] - i * p.stride[d]
    if p.dilation[d] == 1: return n
    return n // p.dilation[d] if n % p.dilation[d] == 0 else -1
