from libc.stdint cimport int64_t

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.losses.entropy cimport Entropy

cdef struct Options:        # the attributes, for kernels
    int kind                # the reduction
    int axis
    int64_t ignored
    double smoothing
    Py_ssize_t chunk

cdef class LossOptions(Attributes):
    cdef readonly str reduction
    cdef readonly int64_t ignore_index
    cdef readonly double label_smoothing
    cdef readonly int axis
    cdef readonly Py_ssize_t chunk
    cdef Options options

cdef class ClassLoss(Operator):
    cdef int hide_logs(self, Call* c) except -1 nogil

cdef LossOptions classes_of(str name, reduction, ignore_index, label_smoothing, int axis, Py_ssize_t chunk)
cdef Tensor read_input(str name, x)
cdef int check_classes(str name, str what, Tensor x, Py_ssize_t classes) except -1
cdef Tensor read_weight(str name, Tensor x, int axis, weight)
cdef Tensor read_labels_of(str name, Tensor x, labels, int axis, str wanted)
cdef int check_labels(Operator op, const Array* labels, Py_ssize_t classes, const Array* weight, int64_t ignored,
                      bint kept, double* total) except -1 nogil
cdef size_t padded(size_t nbytes) noexcept nogil
cdef size_t capacity(const Array* x) noexcept nogil
cdef const char* dense(const Array* x, char** workspace) noexcept nogil
cdef int reduce_rows(Call* c, int reduction, const Layout* rows, const char* values, double divisor) except -1 nogil
cdef size_t gradient_capacity(const Array* g, int reduction) noexcept nogil
cdef const char* gradient_rows(const Array* g, int reduction, char** workspace, Py_ssize_t* step) noexcept nogil
cdef object targets_of(attributes, labels, weight, Py_ssize_t classes, dtype)
cdef object row_gradient(attributes, g, labels, weight)
cdef bint has_weight(c)
cdef object along_classes(t, int axis)
cdef int split(const Layout* x, int axis, Entropy* e) noexcept nogil
cdef object apply(Operator op, Tensor x, Tensor target, Tensor weight, LossOptions attributes)
cdef int few_columns(Tensor x) noexcept
cdef Tensor classes_last(Tensor x)
