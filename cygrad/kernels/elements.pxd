"""Fused types of elements, beside those of array.pxd."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport integer, real

ctypedef fused number:      # an element of any dtype; a bool is a uint8
    integer
    real

ctypedef fused word:        # an element, by its size
    uint8_t
    uint16_t
    uint32_t
    uint64_t
