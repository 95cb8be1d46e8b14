"""Binary search in sorted numbers."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport Array
from cygrad.kernels.by_dtype cimport call_numeric
from cygrad.kernels.driver cimport STRIP, strip_of
from cygrad.kernels.elements cimport number
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    AT_ONCE = 8             # searches in turns
    COST = 20               # of one, in additions


cdef inline bint less(number x, number y) noexcept nogil:
    """x < y, where a NaN is larger than all numbers and equal to a NaN."""
    if number is float or number is double: return x < y or (y != y and x == x)
    else: return x < y


cdef inline bint after(const number* a, number v, bint right) noexcept nogil:
    """Whether v belongs behind a[0]."""
    return (not less(v, a[0])) if right else less(a[0], v)


cdef inline void search_(const number* a, Py_ssize_t n, const number* v, Py_ssize_t count, bint right,
                         int64_t* y) noexcept nogil:
    """y = the number of a that are less than v (right: not larger than v); a is sorted. Some are searched in turns, as
    each waits for memory at every step; without branches, which could not be predicted."""
    cdef Py_ssize_t low[AT_ONCE]
    cdef Py_ssize_t i = 0, j, m, size, half
    while i < count:
        m = min(AT_ONCE, count - i)
        size = n
        for j in range(m): low[j] = 0
        while size > 1:                             # y is from low to low + size
            half = size // 2
            for j in range(m): low[j] += half if after(a + low[j] + half - 1, v[i + j], right) else 0
            size -= half
        for j in range(m): y[i + j] = low[j] + (n > 0 and after(a + low[j], v[i + j], right))
        i += m


cdef struct Search:
    int dtype
    const char* a
    Py_ssize_t n
    const Array* v
    bint right
    int64_t* y


cdef void search_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Search* s = <Search*>job
    cdef char scratch[STRIP * 8]
    cdef const char* p
    cdef Py_ssize_t count
    while start < stop:
        count = min(stop - start, <Py_ssize_t>STRIP)
        p = strip_of(s.v, start, count, scratch)
        call_numeric(s.dtype, search_[int8_t], search_[int16_t], search_[int32_t], search_[int64_t], search_[uint8_t],
                     search_[uint16_t], search_[uint32_t], search_[uint64_t], search_[float], search_[double],
                     <void*>s.a, s.n, <void*>p, count, s.right, s.y + start)
        start += count


cdef void search(int dtype, const char* a, Py_ssize_t n, const Array* v, bint right, int64_t* y) noexcept nogil:
    """y = where each v would be inserted into the n sorted elements of a, before (right: after) equal ones."""
    cdef Search job = Search(dtype, a, n, v, right, y)
    cdef Py_ssize_t count = v.layout.size
    cdef int t = threads_for(count * COST)
    parallel_for(search_range, &job, count, (count + t - 1) // t, t)
