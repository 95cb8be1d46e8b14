cdef struct Interval:       # memory that is needed from step `birth` until before step `death`
    size_t nbytes           # a multiple of ALIGNMENT
    size_t offset           # place() sets it
    int birth, death
    bint kept               # it is needed after the last step
    int over                # it is placed over this one, which then is not needed any more; -1: over none
    int origin              # the number of the buffer whose content it has: its own, or it is made again
    int final               # the number of the buffer that has its content after the last step

cdef enum:
    ALIGNMENT = 64

cdef size_t bound(const Interval* items, int n) except? 0
cdef size_t place(Interval* items, int n) except? 0
