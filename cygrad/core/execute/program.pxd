from cygrad.core.execute.assigned cimport Spot
from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.graph.around cimport Around
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.trace cimport Storage, Trace

cdef class Program:
    """The steps of a trace, with memory."""
    cdef readonly tuple steps
    cdef tuple storages         # memory outside the arena
    cdef Spot* spots            # the addresses in storages, by storage
    cdef int* first_spot        # one a storage, and one after the last
    cdef Tensor arena           # None: no run has taken it yet
    cdef readonly size_t arena_bytes, bound_bytes
    cdef ProgramSchedule schedule
    cdef list inputs            # the storages of the arguments
    cdef list spans             # as `lives`
    cdef set used               # the numbers of the storages that steps have addresses in
    cdef set outside            # the buffers of tensors outside, if steps run again
    cdef dict gradients         # their buffers as the steps were made (gradients_of)
    cdef bint chained           # whether there are chains
    cdef int repeated           # the number of steps that run again,
    cdef double repeated_work, work     # their work, and that of the others
    cdef list signature         # (shape, dtype) of each argument
    cdef list held              # the arguments of this run
    cdef list leaves            # one a GRADIENT: (storage, step that zeroes it, first that uses it, last that writes)
    cdef list followed          # the storages of gradients, whose addresses are set at each run
    cdef list restored          # the constants, which are set at each run
    cdef bint settled           # the last run has checked and set the addresses of all arguments and gradients
    cdef object places          # where the outputs are in the arena
    cdef object results         # what run() returns; None: there was no run
    cdef bint running
    cdef readonly bint ran
    cdef readonly Py_ssize_t split      # begin() stops before this step
    cdef Py_ssize_t at          # the step that runs, or ran last
    cdef Around around          # what was around f
    cdef object __weakref__

    cdef int build(self, Trace t, object limit, object budget) except -1
    cdef int find_spots(self) except -1
    cdef int find_spans(self, Trace t) except -1
    cdef int take_arena(self) except -1
    cdef int bind(self, int number, char* address) noexcept
    cdef int point(self, int number, char* address) noexcept
    cdef int bind_arguments(self) except -1
    cdef int check_made(self) except -1
    cdef object run_part(self, tuple arguments, int first, int stop)
    cdef int bind_gradients(self) except -1
    cdef int restore_constants(self) except -1
    cdef int read_arguments(self, tuple arguments) except -1
    cdef bint is_settled(self) except -1
    cdef int go(self, Py_ssize_t stop) except -1
    cdef object place_outputs(self, result)
    cdef object placed(self, place)
    cdef int find_leaves(self, Trace t) except -1
    cdef int check_argument(self, int i, Tensor x, given) except -1
    cdef int check_apart(self, int i) except -1
    cdef int check_gradients(self) except -1
    cdef bint runs_again(self, Storage s)
    cdef int explain(self, e) except -1
    cdef bint uses(self, Storage s)
