"""Base classes of operators. An elementwise operator has a kernel for its value and, for each input, a rule for the
gradient: a kernel and its operands. The rules determine what backward keeps."""

from libc.stdint cimport uint32_t, uint64_t, uint8_t

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.driver cimport Loop, LoopCall

cdef enum:
    G = -1                  # operands of a rule: the gradient of the output,
    NUMBER = -2             # the operator's number (its attributes are a Number),
    OUT = 0x80              # the output,
    CODE = 0x81             # the codes, which are hidden output 1; from 0 on: the inputs

cdef struct Rule:
    const Loop* loop        # NULL: the gradient is g itself (same), or there is none
    bint same
    bint coded              # it reads codes
    int n
    int operands[4]
    uint64_t saved          # mask of the saved inputs and outputs that it reads, without the codes

cdef class Axis(Attributes):
    cdef readonly int axis

cdef class Number(Attributes):
    cdef readonly object number
    cdef double value       # the same, for kernels

cdef class Code(Attributes):
    cdef readonly int code
    cdef readonly int bits
    cdef readonly tuple shape
    cdef Layout* layout     # the layout of this shape

cdef class Elementwise(Operator):
    cdef int n_in
    cdef const Loop* value
    cdef bint has_number
    cdef Rule rules[3]
    cdef int width          # bits per code
    cdef const Loop* coder  # computes the value and the codes; NULL: the operator has no codes

    cdef int derivative(self, Rule* rule, list words, dict codes) except -1
    cdef int plan_code(self, Call* c) except -1 nogil
    cdef bint needs_code(self, uint64_t wanted) noexcept nogil
    cdef int code_bits(self, uint64_t wanted) noexcept nogil
    cdef const Loop* coder_for(self, uint64_t wanted) noexcept nogil
    cdef const Loop* derivative_for(self, int i, uint64_t wanted) noexcept nogil
    cdef int code_source(self, const BackwardCall* b) noexcept nogil
    cdef Array codes(self, const BackwardCall* b) noexcept nogil
    cdef Tensor where_code(self, Context c, int code)

cdef Axis axis_number(int axis)
cdef Number number_of(number)
cdef int hide_bytes(Call* c, Py_ssize_t nbytes) except -1 nogil
cdef uint64_t recorded_inputs(Node node) noexcept
cdef Array packed(char* data, const Layout* layout, int bits) noexcept nogil
cdef Tensor has_code(Context c, const Layout* l, int bits, int code)
cdef Array number_array(double* bits, double number, int dtype) noexcept nogil
cdef int by_numpy(Operator op, Call* c) except -1
cdef void set_coded(LoopCall* l, const Loop* loop, const uint8_t* bits, const BackwardCall* b) noexcept nogil
cdef void spread(Array* a, const Layout* target, Layout* seen, Py_ssize_t* strides) noexcept nogil

cdef class Truth(Elementwise):
    pass


cdef class View(Operator):
    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil
    cdef int grad_layout(self, const Layout* g, const Layout* x, const void* attributes, Layout* y) except -1 nogil

cdef class Part(View):
    pass
