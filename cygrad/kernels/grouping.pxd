from libc.stdint cimport int64_t

cdef struct Groups:         # equal indices, in ascending order; each group in the order of the indices
    Py_ssize_t n            # number of groups
    const int64_t* index    # it was checked before, but may change: a reader compares it with rows
    Py_ssize_t rows
    int64_t* order          # positions of the indices, group by group
    int64_t* starts         # group k has the positions order[starts[k]] to order[starts[k + 1] - 1]

cdef inline size_t group_bytes(Py_ssize_t n) noexcept nogil:
    """The workspace that group() needs for n indices."""
    return (3 * n + 1) * sizeof(int64_t)

cdef void group(Groups* s, const int64_t* index, Py_ssize_t n, Py_ssize_t rows, char* workspace) noexcept nogil
cdef void sum_groups(const Groups* s, int dtype, const char* values, Py_ssize_t row, bint mean,
                     char* out) noexcept nogil
