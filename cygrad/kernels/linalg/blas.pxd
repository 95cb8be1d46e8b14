from cygrad.kernels.array cimport Array

cdef bint own       # products are those of panels.pyx

cdef int check_sizes(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 nogil
cdef int gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
              const char* b, Py_ssize_t ldb, double beta, char* c, Py_ssize_t ldc) except -1 nogil
cdef int scaled_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                     const char* a, Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                     Py_ssize_t ldc) except -1 nogil
cdef int biased_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                     const char* a, Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                     Py_ssize_t ldc, const char* bias) except -1 nogil
cdef int find_threads(str package) except -1
cdef void begin() noexcept nogil
cdef void end() noexcept nogil
cdef int begin_products() except -1 nogil
cdef void end_products() noexcept nogil
cdef void product(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                  const char* b, Py_ssize_t ldb, double beta, char* c, Py_ssize_t ldc) noexcept nogil
