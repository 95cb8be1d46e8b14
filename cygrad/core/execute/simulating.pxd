from cygrad.core.execute.placing cimport Interval
from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.graph.steps cimport Pointer, Step

cdef enum:
    N_A = 4                 # exponents in the score
    N_B = 3
    N_RULES = N_A * N_B

cdef struct Item:           # the content of a virtual buffer
    size_t nbytes
    int life                # the number of the virtual buffer in the schedule
    int over                # it is written over this item, which its step reads; -1: over none
    int writer              # the step that computes it, and can do so again; -1: it must be kept
    int writers             # the number of steps that write to it
    int valid               # made again before this step, it is the same
    int first, last         # it is used by the steps uses[first:last],
    int next                # of which this is the next one
    int due                 # when it is read next
    int named               # before this step it cannot be dropped
    bint again              # it was made again
    size_t bits             # that are left of it when it is dropped for the first time, until its last use
    bint kept               # it is needed after the last step
    int number              # of the buffer that has it now; -1: none
    int born                # when that was computed
    bint lost               # another item has its memory now
    int pins                # how many steps are about to read it
    int place               # its place among the candidates for eviction; -1: it is none
    double price            # the work to make it again, to the power a; -1: not known

cdef struct StepUses:       # what a step does; the next one has the ends of its ranges
    int owners              # the items of its pointers are owners[owners:]; -1: the pointer is to other memory
    int reads               # it reads reads[reads:],
    int makes               # and computes makes[makes:] anew
    size_t room             # bytes that it needs for nothing but itself
    Py_ssize_t change       # by so many bytes, other memory that counts has grown before it
    double work
    int valid               # run again before this step, it does the same
    int visit               # the last search that came here

cdef class Simulation:
    """A run of a schedule whose virtual buffers have a limited number of bytes."""
    cdef ProgramSchedule schedule
    cdef int n_steps, n_items
    cdef Item* items
    cdef StepUses* steps        # and one after the last
    cdef int* lists             # the memory of all lists below
    cdef int* reads
    cdef int* makes
    cdef int* owners
    cdef int* uses
    cdef int* current           # by virtual buffer: the item that it has, while read_schedule() reads
    cdef int* candidates        # items that have memory and can be dropped
    cdef int* waiting           # steps that run again, the innermost last
    cdef int* visiting          # steps or items that a search will visit
    cdef int n_reads, n_makes, n_candidates, visit
    cdef int rule               # has the exponents a = exponents_a[rule // N_B] and b = exponents_b[rule % N_B]
    cdef double most            # work after which a run is given up,
    cdef double bearable        # and what that is at most
    cdef bint eager             # values are made again as in eager code
    cdef set shared             # storages that can overlap with others
    cdef double* powers         # of distances, for each exponent
    cdef double* distances      # those for `rule`
    cdef size_t whole           # bytes that the arena of the schedule has
    cdef size_t target          # bytes that the arena may have
    cdef size_t limit, live, peak
    cdef int now, at            # the step of the schedule, and of the run
    cdef int split              # of the run; -1: it has not come yet
    cdef readonly int repeated  # the number of steps that ran again,
    cdef readonly double work   # and their work
    cdef list found             # the steps of the run, or None
    cdef list moves             # (step of the schedule, item, whether it gets or loses its memory), or None
    cdef list steps_before      # of the schedule, before apply(),
    cdef int split_before, n_lives
    cdef Interval* lives_before

    cdef int allocate(self) except -1
    cdef int read_schedule(self, ProgramSchedule s) except -1
    cdef int read_step(self, Step step, int at) except -1
    cdef int read_access(self, int item, int at, int access, bint reads) noexcept
    cdef int add_item(self, int life, int over) noexcept
    cdef int find_rooms(self) noexcept
    cdef void add_use(self, Item* x, int at) noexcept
    cdef int find_repeatable(self) except -1
    cdef int memory_of(self, const Pointer* p, int item) except? -1
    cdef int find_shared(self) except -1
    cdef bint run(self, size_t limit, int rule, bint listed) except -1
    cdef bint make_kept(self) except -1
    cdef bint gather(self, const StepUses* u) except -1
    cdef bint make(self, int item) except -1
    cdef int pin(self, int step, int by) except -1
    cdef bint make_all(self, int item) except -1
    cdef bint compute_again(self, int step) except -1
    cdef bint is_needed(self, Item* x) noexcept
    cdef int take(self, int item) except -1
    cdef void drop(self, int item) noexcept
    cdef void used(self, int item) noexcept
    cdef void set_candidate(self, int item) noexcept
    cdef bint reserve(self, size_t nbytes) noexcept
    cdef int cheapest(self) noexcept
    cdef double price_of(self, int item) noexcept
    cdef void forget_prices(self, int item) noexcept
    cdef int emit(self, int at, bint again) except -1
    cdef int unused(self, Step step, int k, const int* owners) except -1
    cdef size_t apply(self, size_t limit, int rule) except 0
    cdef int undo(self) except -1
