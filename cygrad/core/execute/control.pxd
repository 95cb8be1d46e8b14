from cygrad.core.execute.generator cimport Generator
from cygrad.core.execute.program cimport Program
from cygrad.core.graph.steps cimport Step
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.trace cimport Trace

cdef class SubProgram(Program):
    """The program of a function that a step of another program calls. Its arguments, its results and its memory are
    where the step says. If the function calls split_here(), two steps call its two parts: what both need is in memory
    of its own, beside the arena of each."""
    cdef readonly list shapes       # (shape, dtype) of each result
    cdef readonly tuple generators  # those that it draws from
    cdef int n_first                # the number of results of the first part
    cdef Py_ssize_t work_bytes, kept_bytes      # of the arena, and of what both parts need
    cdef char* arena_at             # their addresses, as the steps have them
    cdef char* kept_at

    cdef int divide(self) except -1
    cdef int place_at(self, char* arena, char* kept) noexcept
    cdef int call_on(self, char** arguments, char* arena, char* kept, int first, int stop) except -1


cdef class ControlStep(Step):
    """A step that runs programs: some of `room` addresses, of which subclasses know the order."""
    cdef tuple programs
    cdef list generators            # those that the programs draw from
    cdef char** at                  # the addresses
    cdef int n_at
    cdef int n_in, n_out            # the number of inputs and of outputs
    cdef double most                # the work of the largest program

    cdef int begin(self, Trace t, str name, tuple programs, int n_at) except -1
    cdef int put_tensor(self, Trace t, Tensor x, int access) except -1
    cdef int put_all(self, Trace t, list tensors, int access) except -1
    cdef int put_room(self, Trace t, Py_ssize_t nbytes) except -1
    cdef int skip(self, int n) except -1


cdef class ChoiceStep(ControlStep):
    """If: runs the first of two programs where the condition is true, else the second; or one part of it."""
    cdef int dtype                  # of the condition
    cdef int part                   # 1 or 2; 0: all

cdef class LoopStep(ControlStep):
    """While: runs the body as long as the condition is true."""
    cdef Py_ssize_t bound           # the most turns, or -1
    cdef bint keeps                 # the values of each turn
    cdef int dtype                  # of the condition
    cdef Py_ssize_t* sizes          # bytes of each carried value
    cdef char** arguments           # of the program that runs
    cdef char truth[8]              # the result of the condition

    cdef char* carried(self, Py_ssize_t turn, int i) noexcept

cdef class LoopBackStep(ControlStep):
    """The gradient of While: the gradient of the body, turn by turn, from the last to the first."""
    cdef Py_ssize_t bound
    cdef int n_carried, n_sums
    cdef Py_ssize_t* sizes          # bytes of each carried value, then of each gradient of one, then of each sum
    cdef int* dtypes                # of the sums
    cdef char** arguments
