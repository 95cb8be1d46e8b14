from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Layout

cdef Tensor new_tensor(Buffer* buffer, Layout* layout, int dtype)
cdef Tensor view_of(Tensor x, Layout* layout)
cdef Tensor computed(Layout* layout, int dtype, int category)
cdef Tensor fresh(Layout* layout, int dtype, int category)
cdef Tensor copy_plain(Tensor t)
cdef Tensor zeros_like(Tensor x, int category)
cdef bint release_as_zeros(Tensor t) noexcept
