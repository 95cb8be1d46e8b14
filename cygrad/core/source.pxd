from cygrad.core.modes cimport Flags

cdef str doing(const Flags* f)
cdef object nearest(int* instruction)
cpdef tuple where()
