from libc.stdint cimport uint64_t

cdef class Generator:
    cdef uint64_t key           # the seed
    cdef uint64_t counter       # the number of blocks drawn so far
    cdef object __weakref__

cdef Generator seen(Generator g)
cdef uint64_t draw(Generator g, uint64_t blocks) except? -1
cdef int draw_for(Generator g, uint64_t blocks, object attributes, uint64_t* key, uint64_t* at) except -1
cdef void give_back(Generator g, uint64_t first, uint64_t blocks) noexcept
cdef Generator given_or_default(generator)
cdef double read_probability(value) except? -1
cdef double read_chance(str caller, str what, value) except? -1
