"""Packed codes of one or two bits for each element. A group of 64 elements stores bit 0 of all its elements, then bit 1
of all; the last group may be shorter. The first element is in the lowest bit of a little-endian word. Kernels write and
read codes in words of 64 elements (include/cygrad/codes.h)."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from cygrad.kernels.array cimport real

cdef extern from "cygrad/codes.h" nogil:
    const double* ZEROS "cg_zeros"                  # 64 zeros, readable as float too
    uint64_t greater_f "cg_greater_f"(const float* x, const float* y)
    uint64_t greater_d "cg_greater_d"(const double* x, const double* y)
    uint64_t at_least_f "cg_at_least_f"(const float* x, const float* y)
    uint64_t at_least_d "cg_at_least_d"(const double* x, const double* y)
    uint64_t nonzero "cg_nonzero"(const uint8_t* x)     # which of 64 bytes are not 0
    void spread_bits "cg_spread"(uint64_t low, uint64_t high, uint8_t* codes)      # to 64 bytes of 0 to 3

cdef enum:
    BIT = 32                # dtypes of packed operands, used only by the driver: one bit for each element, or
    PAIR                    # two. A kernel receives them unpacked, as a byte of 0 or 1, or of 0 to 3.
    WORD = 64               # elements of a word


cdef inline uint64_t greater(const real* x, const real* y) noexcept nogil:
    """x > y for 64 elements, as bits."""
    if real is float: return greater_f(x, y)
    else: return greater_d(x, y)


cdef inline uint64_t at_least(const real* x, const real* y) noexcept nogil:
    """x >= y for 64 elements, as bits."""
    if real is float: return at_least_f(x, y)
    else: return at_least_d(x, y)


cdef inline int bits_of(int dtype) noexcept nogil:
    """Bits per element of a packed dtype; 0 for any other dtype."""
    return 0 if dtype < BIT else dtype - BIT + 1


cdef inline Py_ssize_t packed_bytes(Py_ssize_t n, int bits) noexcept nogil:
    return (n * bits + 7) // 8


cdef inline void put_words(const uint64_t* words, Py_ssize_t n, int bits, uint8_t* packed) noexcept nogil:
    """Store the codes of the first n elements of `words`, which has those of 64; 1 <= n <= 64."""
    cdef uint64_t both[2]
    cdef uint64_t valid = ~<uint64_t>0 >> (WORD - n)
    both[0] = words[0] & valid
    if bits == 2:
        both[1] = (words[1] & valid) >> (WORD - n)
        if n < WORD: both[0] |= (words[1] & valid) << n
    memcpy(packed, both, packed_bytes(n, bits))


cdef inline void unpack_codes(const uint8_t* packed, Py_ssize_t n, int bits, uint8_t* codes) noexcept nogil:
    """A byte for each code. The capacity of `codes` is n rounded up to a multiple of 64."""
    cdef uint64_t both[2]
    cdef uint64_t valid
    both[0] = both[1] = 0
    while n >= WORD:
        memcpy(both, packed, 8)
        if bits == 2: memcpy(&both[1], packed + 8, 8)
        spread_bits(both[0], both[1], codes)
        packed, codes, n = packed + 8 * bits, codes + WORD, n - WORD
    if n == 0: return
    both[0] = both[1] = 0
    memcpy(both, packed, packed_bytes(n, bits))
    valid = ~<uint64_t>0 >> (WORD - n)
    if bits == 2: both[1] = (both[0] >> n | both[1] << (WORD - n)) & valid
    spread_bits(both[0] & valid, both[1], codes)
