from cygrad.kernels.images.windows cimport Pool

cdef void max_pool(Pool* p) noexcept nogil
cdef void take_places(Pool* p) noexcept nogil
cdef void put_places(Pool* p) noexcept nogil
cdef void mean_pool(Pool* p) noexcept nogil
cdef void spread_means(Pool* p) noexcept nogil
