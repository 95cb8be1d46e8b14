"""Codes of one bit or two for each element, packed: the first element is in the lowest bits of the first byte. Whole
words are packed and unpacked by a multiplication or a few shifts; the bytes of a word are little-endian here."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    BIT = 32                # dtypes of an operand that only the driver knows: a bit for each element, which a kernel
    PAIR                    # sees as a byte of 0 or 1; two bits, 0 to 3


cdef inline int bits_of(int dtype) noexcept nogil:
    """How many bits an element has of a packed dtype; 0 of any other."""
    return 0 if dtype < BIT else dtype - BIT + 1


cdef inline Py_ssize_t packed_bytes(Py_ssize_t n, int bits) noexcept nogil:
    return (n * bits + 7) // 8


cdef inline void pack_codes(uint8_t* codes, Py_ssize_t n, int bits, uint8_t* packed) noexcept nogil:
    """`codes` are a byte each, of which no bit but the lowest `bits` is set, with room for 7 more behind them."""
    cdef uint64_t eight
    cdef uint32_t four
    cdef Py_ssize_t i
    memset(codes + n, 0, 7)
    if bits == 1:                                   # bit 8 k goes to bit 56 + k; no two of the products meet
        for i in range((n + 7) // 8):
            memcpy(&eight, codes + 8 * i, 8)
            packed[i] = <uint8_t>((eight * <uint64_t>0x0102040810204080) >> 56)
    else:                                           # bits 8 k and 8 k + 1 go to 24 + 2 k
        for i in range((n + 3) // 4):
            memcpy(&four, codes + 4 * i, 4)
            packed[i] = <uint8_t>((four * <uint32_t>0x01041040) >> 24)


cdef inline void unpack_codes(const uint8_t* packed, Py_ssize_t n, int bits, uint8_t* codes) noexcept nogil:
    """The other way; `codes` has room for 7 more."""
    cdef uint64_t eight
    cdef uint32_t four
    cdef Py_ssize_t i
    if bits == 1:                                   # byte k gets bit k of all, then 1 where it is not 0
        for i in range((n + 7) // 8):
            eight = (packed[i] * <uint64_t>0x0101010101010101) & <uint64_t>0x8040201008040201
            eight = ((eight + <uint64_t>0x7F7F7F7F7F7F7F7F) >> 7) & <uint64_t>0x0101010101010101
            memcpy(codes + 8 * i, &eight, 8)
    else:
        for i in range((n + 3) // 4):
            four = packed[i]
            four = (four | four << 6 | four << 12 | four << 18) & <uint32_t>0x03030303
            memcpy(codes + 4 * i, &four, 4)
