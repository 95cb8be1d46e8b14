from cygrad.kernels.array cimport real
from cygrad.kernels.images.windows cimport Pool

cdef enum:
    TAPS = 256              # elements of the largest window
    PACK = 2048             # packed elements of a tile: with the results at most 48 KiB

cdef struct Phases:         # the tiles of planes; rows and columns are the dimensions 0 and 1 of what follows
    bint fit                # whether the functions below compute this pooling
    Py_ssize_t step[2]      # elements of X from one window to the next, which is the number of phases
    Py_ssize_t low[2]       # zeros before X
    Py_ssize_t wide[2]      # elements of a window
    Py_ssize_t span[2]      # packed elements of a phase beyond those of the last position
    Py_ssize_t part[2]      # positions of one tile
    int f[2][TAPS]          # the phase of an element of a window,
    int q[2][TAPS]          # and its place in the phase, from the position on
    Py_ssize_t tile[3]      # the tile whose sums are divided by
    double count[PACK]

cdef void set_phases(const Pool* p, Phases* t) noexcept nogil
cdef void phases_max(const Pool* p, const Phases* t, const real* x, real* y, Py_ssize_t at) noexcept nogil
cdef void phases_mean(const Pool* p, Phases* t, const real* x, real* y) noexcept nogil
cdef void phases_spread(const Pool* p, Phases* t, real* x, const real* y) noexcept nogil
