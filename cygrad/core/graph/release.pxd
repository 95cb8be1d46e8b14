cdef void let_go_later(void* node) noexcept
cdef void empty_list() noexcept
