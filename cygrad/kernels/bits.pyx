"""Packed bits: bit i & 7 of byte i >> 3 belongs to element i. A sign bit is set where the element is not <= 0, so a NaN
counts as positive, as in relu. Also functions of packed codes, which have one or two bits for each element."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport UINT16, UINT32, Array, real
from cygrad.kernels.by_dtype cimport call, call_bint, vector
from cygrad.kernels.codes cimport WORD, ZEROS, at_least, greater, nonzero, put_words, unpack_codes
from cygrad.kernels.driver cimport STRIP, gather, strip_of

cdef extern from "cygrad/platform.h" nogil:
    int cg_count_bits(unsigned long long word)

ctypedef fused place:
    uint16_t
    uint32_t
    int64_t


cdef inline const real* padded_word(const real* x, Py_ssize_t n, real* scratch) noexcept nogil:
    """A pointer to 64 readable elements: x itself, or `scratch` with a copy if n < 64."""
    if n >= WORD: return x
    memcpy(scratch, x, n * sizeof(real))
    return scratch


cdef void pack_(real[::1] x, uint8_t* bits) noexcept nogil:
    cdef real scratch[WORD]
    cdef Py_ssize_t n = x.shape[0], i, k
    cdef uint64_t word
    for k in range((n + WORD - 1) // WORD):
        i = WORD * k
        word = ~at_least(<real*>ZEROS, padded_word(&x[i], n - i, scratch))
        put_words(&word, min(n - i, <Py_ssize_t>WORD), 1, bits + i // 8)


cdef void pack_equal_(real[::1] x, real[::1] y, uint8_t* bits) noexcept nogil:
    cdef real scratch[2][WORD]
    cdef Py_ssize_t n = x.shape[0], i, k
    cdef const real* a
    cdef const real* b
    cdef uint64_t word
    for k in range((n + WORD - 1) // WORD):
        i = WORD * k
        a, b = padded_word(&x[i], n - i, scratch[0]), padded_word(&y[i], n - i, scratch[1])
        word = at_least(a, b) & at_least(b, a) | ~(at_least(a, a) | at_least(b, b))
        put_words(&word, min(n - i, <Py_ssize_t>WORD), 1, bits + i // 8)


cdef void pack_ones_(real[::1] x, uint8_t* bits) noexcept nogil:
    cdef real scratch[WORD]
    cdef Py_ssize_t n = x.shape[0], i, k
    cdef uint64_t word
    for k in range((n + WORD - 1) // WORD):
        i = WORD * k
        word = greater(padded_word(&x[i], n - i, scratch), <real*>ZEROS)
        put_words(&word, min(n - i, <Py_ssize_t>WORD), 1, bits + i // 8)


cdef void unpack_(const uint8_t* bits, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = (bits[i >> 3] >> (i & 7)) & 1


ctypedef fused word:        # the bits of a number
    uint32_t
    uint64_t

cdef void mask_(const uint8_t* bits, const word* g, word* dx, Py_ssize_t n) noexcept nogil:
    """dx = g where the bit is set, else 0. A branch would be mispredicted: 5 ns for an element. Eight elements pass
    through a local array, which the compiler turns into a vector even if dx is g."""
    cdef word eight[8]
    cdef Py_ssize_t i = 0, l
    cdef uint32_t byte
    while i + 8 <= n:
        byte = bits[i >> 3]
        for l in range(8): eight[l] = g[i + l] & (0 - <word>((byte >> l) & 1))
        for l in range(8): dx[i + l] = eight[l]
        i += 8
    for i in range(i, n): dx[i] = g[i] & (0 - <word>((bits[i >> 3] >> (i & 7)) & 1))


cdef void pack_signs(const char* x, int dtype, Py_ssize_t n, uint8_t* bits) noexcept nogil:
    call(dtype, pack_[float], pack_[double], vector(dtype, x, n), bits)


cdef void pack_equal(const Array* x, const Array* y, uint8_t* bits) noexcept nogil:
    """A bit for each element in row-major order: whether x == y. Both have the same shape. A NaN is equal to a NaN."""
    cdef char scratch[2][STRIP * 8]
    cdef Py_ssize_t start = 0, n = x.layout.size, count
    cdef const char* p
    while start < n:
        count = min(n - start, <Py_ssize_t>STRIP)
        p = strip_of(x, start, count, &scratch[0][0])
        gather(&scratch[1][0], y, start, count)
        call(x.dtype, pack_equal_[float], pack_equal_[double], vector(x.dtype, p, count),
             vector(x.dtype, &scratch[1][0], count), bits + start // 8)
        start += count


cdef void unpack_bits(const uint8_t* bits, int dtype, Py_ssize_t n, char* y) noexcept nogil:
    call(dtype, unpack_[float], unpack_[double], bits, vector(dtype, y, n))


cdef void mask(const uint8_t* bits, int dtype, Py_ssize_t n, const char* g, char* dx) noexcept nogil:
    """dx = g where the bit is set, else 0. dx may be g."""
    call(dtype, mask_[uint32_t], mask_[uint64_t], bits, <const void*>g, <void*>dx, n)


cdef void where_code_is(const uint8_t* packed, Py_ssize_t n, int bits, int code, uint8_t* y) noexcept nogil:
    """y = (code of the element == code), as bools"""
    cdef uint8_t codes[STRIP]
    cdef Py_ssize_t i, start = 0, count
    while start < n:
        count = min(n - start, <Py_ssize_t>STRIP)
        unpack_codes(packed + start * bits // 8, count, bits, codes)
        for i in range(count):
            y[start + i] = codes[i] == code
        start += count


cdef bint zeros_and_ones(const Array* x) noexcept nogil:
    """Whether each element is 0 or 1."""
    cdef char scratch[STRIP * 8]
    cdef Py_ssize_t start = 0, n = x.layout.size, count
    cdef const char* p
    while start < n:
        count = min(n - start, <Py_ssize_t>STRIP)
        p = strip_of(x, start, count, scratch)
        if call_bint(x.dtype, has_other_value[float], has_other_value[double], vector(x.dtype, p, count)): return False
        start += count
    return True


cdef void pack_ones(const Array* x, uint8_t* bits) noexcept nogil:
    """A bit for each element in row-major order; all elements are 0 or 1."""
    cdef char scratch[STRIP * 8]
    cdef Py_ssize_t start = 0, n = x.layout.size, count
    cdef const char* p
    while start < n:
        count = min(n - start, <Py_ssize_t>STRIP)
        p = strip_of(x, start, count, scratch)
        call(x.dtype, pack_ones_[float], pack_ones_[double], vector(x.dtype, p, count), bits + start // 8)
        start += count


cdef bint has_other_value(real[::1] x) noexcept nogil:
    """Whether some element is neither 0 nor 1."""
    cdef int other = 0
    for i in range(x.shape[0]):
        other |= (x[i] != 0) & (x[i] != 1)
    return other != 0


# ---- masks -----------------------------------------------------------------------------------------------------------

cdef Py_ssize_t pack_mask(const Array* mask, uint8_t* bits) noexcept nogil:
    """A bit for each element of a bool array in row-major order. Returns the number of bits that are set."""
    cdef uint8_t strip[STRIP]
    cdef Py_ssize_t start = 0, n = mask.layout.size, count, i, k, found = 0
    cdef uint64_t word
    while start < n:
        count = min(n - start, <Py_ssize_t>STRIP)
        gather(<char*>strip, mask, start, count)
        for k in range((count + WORD - 1) // WORD):
            i = WORD * k
            word = nonzero(strip + i)
            if count - i < WORD: word &= (<uint64_t>1 << (count - i)) - 1
            put_words(&word, min(count - i, <Py_ssize_t>WORD), 1, bits + (start + i) // 8)
            found += cg_count_bits(word)
        start += count
    return found


cdef Py_ssize_t places_(const Array* mask, Py_ssize_t max_places, place* places) noexcept nogil:
    cdef uint8_t strip[STRIP]
    cdef Py_ssize_t start = 0, n = mask.layout.size, count, i, k = 0
    while start < n:
        count = min(n - start, <Py_ssize_t>STRIP)
        gather(<char*>strip, mask, start, count)
        for i in range(count):
            if strip[i]:
                if k < max_places: places[k] = <place>(start + i)
                k += 1
        start += count
    return k


cdef void set_(const place* places, Py_ssize_t k, Py_ssize_t n, uint8_t* mask) noexcept nogil:
    cdef uint64_t at                                # (a negative position becomes a number that is too large)
    for i in range(k):
        at = <uint64_t>places[i]
        if at < <uint64_t>n: mask[at] = 1


cdef Py_ssize_t places_of(const Array* mask, int dtype, Py_ssize_t max_places, char* places) noexcept nogil:
    """The row-major positions of the true elements, in order, up to `max_places` of them. `dtype`, the dtype of the
    positions, is UINT16, UINT32 or INT64. Returns the number of true elements."""
    if dtype == UINT16: return places_(mask, max_places, <uint16_t*>places)
    if dtype == UINT32: return places_(mask, max_places, <uint32_t*>places)
    return places_(mask, max_places, <int64_t*>places)


cdef void mask_from(const char* places, int dtype, Py_ssize_t k, Py_ssize_t n, uint8_t* mask) noexcept nogil:
    """A mask of n elements; those at the k positions are true. Positions outside of it, which only a damaged file can
    have, are ignored."""
    memset(mask, 0, n)
    if dtype == UINT16: set_(<const uint16_t*>places, k, n, mask)
    elif dtype == UINT32: set_(<const uint32_t*>places, k, n, mask)
    else: set_(<const int64_t*>places, k, n, mask)
