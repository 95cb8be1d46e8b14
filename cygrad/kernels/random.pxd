from libc.stdint cimport uint32_t, uint64_t

cdef enum Law:
    UNIFORM                 # a + b u, 0 <= u < 1, below the bound c
    NORMAL                  # a + b z, z of mean 0 and variance 1
    BERNOULLI               # 1 with probability a, else 0

cdef extern from "cygrad/philox.h" nogil:
    enum:
        LANES "CG_BLOCKS"   # blocks that are computed together: their words stay in the first-level cache

cdef void make_words(uint64_t key, uint64_t first, uint32_t* words) noexcept nogil
cdef void make_block(uint64_t key, uint64_t block, uint64_t attempt, uint32_t* w) noexcept nogil
cdef Py_ssize_t blocks_of(int law, int dtype, Py_ssize_t n) noexcept nogil
cdef int sample(int law, int dtype, uint64_t key, uint64_t counter, double a, double b, double c, Py_ssize_t n,
                char* y) except -1
cdef int integers(uint64_t key, uint64_t counter, uint64_t low, uint64_t max_value, Py_ssize_t n, uint64_t* y) except -1
cdef int permute(uint64_t key, uint64_t counter, Py_ssize_t n, uint64_t* y) except -1
cdef Py_ssize_t mask_blocks(Py_ssize_t n) noexcept nogil
cdef int dropout(int dtype, uint64_t key, uint64_t counter, double p, Py_ssize_t n, const char* x,
                 char* y) except -1 nogil
