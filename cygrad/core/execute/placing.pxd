cdef struct Interval:       # memory that is needed from step `birth` until before step `death`
    size_t nbytes           # a multiple of ALIGNMENT
    size_t offset           # place() sets it
    int birth, death

cdef enum:
    ALIGNMENT = 64

cdef size_t bound(const Interval* items, int n) except? 0
cdef size_t place(Interval* items, int n) except? 0
