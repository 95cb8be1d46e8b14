from libc.stdint cimport uint64_t

from cygrad.core.execute.recipes cimport Change, Observer, Recipe, Value
from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.graph.operator cimport MAX_OUTPUTS

cdef enum:
    MOST_NAMED = 64         # values that are followed although more than slots refers to them

cdef enum Place:            # where a content is
    NOWHERE
    NAMED                   # in memory, and not (only) slots keep it there
    SAVED                   # in memory, and slots alone keep it there
    LEFT                    # something keeps it for long, so it counts as other memory

cdef struct Content:        # what a Value is in a sequence
    void* value             # borrowed; NULL: it is gone
    Py_ssize_t nbytes
    Place place
    int born                # the moment that made it
    int named               # the one in which something else than slots referred to it last, at first
    int read                # the last entry that read it
    bint stuck              # it cannot be made again
    size_t bits             # that are left of it when it is evicted, for the signs

cdef struct Moment:         # a part of a sequence, in which other memory only grows and contents stay where they are
    int entry               # the number of entries so far, with its own
    int uses                # it reads the contents uses[uses:], or something has names for them
    int makes               # and makes contents[makes:]; the next moment has the ends of both
    double work             # to make these
    Py_ssize_t level, peak  # bytes that are not those of contents: as it begins, and at most

cdef class SeenStep:
    """What a step did: its entries, which are the calls that it recorded and the values that backward read. Numbers
    of contents count from the first one that it made."""
    cdef uint64_t serial
    cdef uint64_t* entries  # what each did, as a hash
    cdef Content* contents
    cdef Moment* moments
    cdef int* uses
    cdef int n_entries, n_contents, n_moments, n_uses
    cdef int[4] rooms       # for so many there is memory
    cdef int[MOST_NAMED + MAX_OUTPUTS] named    # contents that are NAMED
    cdef int n_named
    cdef Py_ssize_t held    # bytes of contents in memory,
    cdef Py_ssize_t saved   # and of those that can be evicted for certain
    cdef Py_ssize_t top     # of other memory, when the moment was last seen
    cdef bint open          # the last moment goes on,
    cdef bint taken         # and has an entry
    cdef list plan          # (entry, content, whether it gets or loses its memory) in this order; None: not yet known
    cdef Py_ssize_t bound   # for which it was made: the bytes of a budget,
    cdef Py_ssize_t began   # and of other memory as a step began
    cdef Py_ssize_t limit   # that a step which follows it stays under
    cdef int planned        # recipes that it executes; -1: no plan is followed
    cdef double work        # theirs
    cdef int plans          # that were made for this sequence so far
    cdef double before      # the work of all recipes that had been executed when the step began
    cdef double unplanned   # that of those which a step executed without a plan, within so many bytes; -1: not known
    cdef Py_ssize_t under

    cdef int move(self, Content* c, Place to) noexcept
    cdef int count(self, const Content* c, int sign) noexcept
    cdef int look(self) except -1
    cdef void name(self, int content) noexcept
    cdef int begin_moment(self) except -1
    cdef int use(self, int content) except -1
    cdef int make_plan(self, Py_ssize_t bound, Py_ssize_t start) except -1
    cdef ProgramSchedule schedule(self)
    cdef int plan_nothing(self, Py_ssize_t bound, Py_ssize_t start) except -1
    cdef int follow(self, SeenStep m) except -1
    cdef Py_ssize_t start(self) noexcept


cdef class Follower(Observer):
    """The sequences of the steps in the scopes of a budget."""
    cdef SeenStep now       # of the step that runs
    cdef SeenStep model     # it has done the same so far, or None
    cdef list known         # sequences of earlier steps, the last one first
    cdef int cursor         # in the plan of `model`: what was evicted,
    cdef int ahead          # and what is in memory then:
    cdef set there          # these contents
    cdef int passes         # backward passes that have ended in the step
    cdef bint reading       # a backward pass has read since the last call outside of passes
    cdef bint planning
    cdef bint used          # by a scope that is open
    cdef double left        # the work of all recipes that had been executed when the scope was closed

    cdef int begin(self) except -1
    cdef int rewind(self) except -1
    cdef bint holds(self) noexcept
    cdef int content_of(self, Value v) noexcept
    cdef int note(self, uint64_t what) except -1
