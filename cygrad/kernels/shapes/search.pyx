"""Binary search in sorted numbers."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport Array
from cygrad.kernels.by_dtype cimport call_numeric
from cygrad.kernels.driver cimport STRIP, strip_of
from cygrad.kernels.elements cimport number


cdef inline bint less(number x, number y) noexcept nogil:
    """x < y, where a NaN is larger than all numbers and equal to a NaN."""
    if number is float or number is double: return x < y or (y != y and x == x)
    else: return x < y


cdef inline void search_(const number* a, Py_ssize_t n, const number* v, Py_ssize_t count, bint right,
                         int64_t* y) noexcept nogil:
    """y = the number of a that are less than v (right: not larger than v); a is sorted"""
    cdef Py_ssize_t i, low, high, middle
    for i in range(count):
        low, high = 0, n
        while low < high:
            middle = low + (high - low) // 2
            if (not less(v[i], a[middle])) if right else less(a[middle], v[i]): low = middle + 1
            else: high = middle
        y[i] = low


cdef void search(int dtype, const char* a, Py_ssize_t n, const Array* v, bint right, int64_t* y) noexcept nogil:
    """y = where each v would be inserted into the n sorted elements of a, before (right: after) equal ones."""
    cdef char scratch[STRIP * 8]
    cdef const char* p
    cdef Py_ssize_t start = 0, count
    while start < v.layout.size:
        count = min(v.layout.size - start, <Py_ssize_t>STRIP)
        p = strip_of(v, start, count, scratch)
        call_numeric(dtype, search_[int8_t], search_[int16_t], search_[int32_t], search_[int64_t], search_[uint8_t],
                     search_[uint16_t], search_[uint32_t], search_[uint64_t], search_[float], search_[double],
                     <void*>a, n, <void*>p, count, right, y + start)
        start += count
