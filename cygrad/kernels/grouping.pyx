"""Grouping of equal indices, so that each row of a row-sparse gradient is summed once, and the sums of the groups.

The rows of a group are added in the order of their indices, and one thread computes a group. So the sums have the same
bits for any number of threads, and those that a dense gradient has.

Another thread may write the indices meanwhile, for example through NumPy. The groups then have any rows, but their
positions are within the indices, and who reads an index of a group checks it again."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    DIGIT = 11              # bits of an index that one pass of the sort reads
    DIGITS = 1 << DIGIT


cdef void group(Groups* s, const int64_t* index, Py_ssize_t n, Py_ssize_t rows, char* workspace) noexcept nogil:
    """Sort the positions of n indices, which are 0 to rows - 1, by index: a stable radix sort. `workspace` has
    group_bytes(n) bytes, which `s` refers to afterwards."""
    cdef int64_t* a = <int64_t*>workspace
    cdef int64_t* b = a + n
    cdef int64_t* other
    cdef Py_ssize_t i
    cdef int shift = 0
    s.index, s.rows, s.starts = index, rows, b + n
    for i in range(n): a[i] = i
    while shift < 63 and (rows - 1) >> shift:
        sort_by_digit(index, n, shift, a, b)
        other = a
        a = b
        b = other
        shift += DIGIT
    s.order, s.n = a, 0
    for i in range(n):
        if i and index[a[i]] == index[a[i - 1]]: continue
        s.starts[s.n] = i
        s.n += 1
    s.starts[s.n] = n


cdef void sort_by_digit(const int64_t* index, Py_ssize_t n, int shift, const int64_t* a, int64_t* b) noexcept nogil:
    """b = a, the positions of indices, sorted by one digit of the indices."""
    cdef int64_t place[DIGITS]
    cdef int64_t total = 0, count, to
    cdef Py_ssize_t i, digit
    memset(place, 0, sizeof(place))
    memcpy(b, a, n * sizeof(int64_t))               # (positions where no digit leads if the indices change)
    for i in range(n): place[index[i] >> shift & (DIGITS - 1)] += 1
    for digit in range(DIGITS):
        count = place[digit]
        place[digit] = total
        total += count
    for i in range(n):
        digit = index[a[i]] >> shift & (DIGITS - 1)
        to = place[digit]
        if to < n: b[to] = a[i]
        place[digit] = to + 1


# ---- sums ------------------------------------------------------------------------------------------------------------

cdef struct Sums:
    const Groups* groups
    const char* values
    char* out
    Py_ssize_t row
    int dtype
    bint mean


cdef void sum_groups(const Groups* s, int dtype, const char* values, Py_ssize_t row, bint mean,
                     char* out) noexcept nogil:
    """Row k of out = the sum (or the mean) of the rows of `values` in group k. Both are dense."""
    cdef Sums job = Sums(s, values, out, row, dtype, mean)
    cdef int t = threads_for(s.starts[s.n] * row)
    parallel_for(sum_range, &job, s.n, (s.n + t - 1) // t, t)


cdef void sum_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Sums* s = <Sums*>job
    call(s.dtype, sum_[float], sum_[double], s, <void*>s.values, <void*>s.out, start, stop)


cdef void sum_(const Sums* s, const real* values, real* out, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Groups* groups = s.groups
    cdef const real* x
    cdef real* y
    cdef Py_ssize_t k, j, i, first, count
    for k in range(start, stop):
        first, count = groups.starts[k], groups.starts[k + 1] - groups.starts[k]
        y = out + k * s.row
        memcpy(y, values + groups.order[first] * s.row, s.row * sizeof(real))
        for j in range(first + 1, first + count):
            x = values + groups.order[j] * s.row
            for i in range(s.row): y[i] += x[i]
        if s.mean and count > 1:
            for i in range(s.row): y[i] /= <real>count
