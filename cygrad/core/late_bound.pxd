"""Functions and objects that the core uses and a higher module provides. The core calls upwards in no other way, except
that users give it functions (hooks, rules, listeners), that a memory profile sets observers while it is open
(core/store/buffer, core/graph/slots), and that methods are added to its classes by bind_methods().

Each field is bound once, while cygrad is imported: a C function by assignment, Python objects by bind(). A tensor or an
operator is an `object` here and a buffer is a `void*`, because this module lies below all of them."""

ctypedef object (*apply1_t)(object op, object x, object attributes)
ctypedef object (*apply2_t)(object op, object x, object y, object attributes)
ctypedef object (*cast_t)(object tensor, int dtype)
ctypedef object (*apply_inplace_t)(object op, object target, object other, object attributes)
ctypedef object (*run_lifted_t)(object op, list operands, object attributes, object target)
ctypedef int (*lend_buffer_t)(object tensor, Py_buffer* view, int flags) except -1
ctypedef int (*renew_place_t)(object tensor) except -1
ctypedef void (*tensor_made_t)(object tensor) noexcept
ctypedef void (*of_buffer_t)(void* buffer) noexcept
ctypedef void* (*allocate_virtual_t)(size_t nbytes, int category) except NULL
ctypedef int (*make_virtual_t)(void* buffer, size_t nbytes) except -1
ctypedef int (*make_room_t)(size_t nbytes) except -1
ctypedef int (*trace_stage_t)(object turn, int stage, void* workspace) except -1


cdef class LateBound:
    # ops/__init__.py: the operators and functions of Tensor's own syntax
    cdef public dict operators          # all operators by name
    cdef public frozenset names         # names of all operators and public functions that are made of them
    cdef public object add, sub, mul, div, neg, abs, bitwise_and, bitwise_or, bitwise_xor, bitwise_not
    cdef public tuple comparisons       # in the order of Python's numbers for comparisons
    cdef public object matmul, pow, getitem, setitem, sum_to, locally_constant
    cdef public object map_lanes        # func/lanes: an operation on all lanes
    cdef public object tangents_of      # func/forward: the tangents of the results of an operation
    cdef public object function_at_levels   # func/functions: the call of an autograd.Function on tensors with lifts
    cdef public object zeros_like, broadcast_to
    cdef public object namespace        # cygrad itself: the public names, for messages
    cdef public object external_bytes   # core/store/external: the bytes of external memory that tensors share
    # core/interop: creating tensors from other data, printing them, reading them from Python
    cdef public object asarray, repr, truth, index, from_dlpack
    cdef lend_buffer_t lend_buffer      # the buffer protocol
    cdef cast_t cast                    # ops/shapes/shape: a recorded cast of an operation's input
    # core/execute
    cdef apply1_t apply1
    cdef apply2_t apply2
    cdef apply_inplace_t apply_inplace
    cdef public object apply_list
    cdef run_lifted_t run_lifted        # lifting: an operation on tensors that have lifts
    # core/graph
    cdef allocate_virtual_t allocate_virtual    # trace: the allocations of a thread that traces
    cdef make_virtual_t make_virtual    # trace: gives virtual memory to a buffer of zeros
    cdef renew_place_t renew_place      # views: update the graph position of a stale tensor
    cdef tensor_made_t tensor_made      # scopes: called for each new tensor while the thread has a memory.scope()
    cdef of_buffer_t shrink_signs       # signs: called for a buffer of which only the signs are needed
    cdef of_buffer_t unwatch            # packing: called before a watched buffer is released
    # core/backward
    cdef make_room_t make_room          # execute/budget: evicts values before the pool takes memory
    cdef trace_stage_t trace_stage      # stages: called instead of a stage of a turn while its thread traces

cdef LateBound late_bound
