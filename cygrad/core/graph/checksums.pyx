"""CYGRAD_CHECK_SAVED=1: backward compares every saved tensor with its checksum from the time when it was saved.

Versions count only writes through tensors. Writes through NumPy or another library that shares the memory bypass them,
and the gradient would be wrong without an error. With the switch on, every saved tensor is read twice more. With it
off, each node costs one test."""

import os

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport Node, Tensor, array_of, slots_of
from cygrad.core.graph.slots cimport Slot, buffer_in, elements, sign_bits, was_written
from cygrad.core.graph.trace cimport on_buffer, traces
from cygrad.kernels.array cimport UINT8, Array, Layout, itemsize
from cygrad.kernels.driver cimport STRIP, gather

from cygrad.core.errors import InplaceError
from cygrad.core.source import where

checking = os.environ.get("CYGRAD_CHECK_SAVED", "0") not in ("", "0")

cdef dict known = {}        # address of a slot -> (number of its node, checksum, "file:line" of the operation)


cdef Tensor bytes_of(Buffer* b):
    """The memory of a buffer as a tensor of bytes."""
    cdef Py_ssize_t n = b.nbytes
    cdef Layout* l = lay.dense(1, &n)
    try: return on_buffer(b, l, UINT8)
    finally: lay.decref(l)


cdef bytes checksum_of_memory(Buffer* b):
    """The checksum of the memory of a buffer."""
    cdef Array a = array_of(bytes_of(b))
    return checksum(&a)


cdef bytes checksum(const Array* a):
    """The checksum of the elements of an array."""
    import hashlib

    cdef char strip[STRIP * 8]
    cdef Py_ssize_t start, count
    digest = hashlib.blake2b(digest_size=16)
    if a.layout.dense: digest.update(<const char[:a.layout.size * itemsize(a.dtype)]>a.data if a.layout.size else b"")
    for start in range(0, 0 if a.layout.dense else a.layout.size, STRIP):
        count = min(<Py_ssize_t>STRIP, a.layout.size - start)
        gather(strip, a, start, count)
        digest.update(strip[:count * itemsize(a.dtype)])
    return digest.digest()


cdef bytes checksum_in(Slot* s):
    cdef Array a = elements(s)
    return checksum(&a)


def checksum_of(Tensor x):
    """The checksum of a tensor's elements; None if CYGRAD_CHECK_SAVED is off."""
    cdef Array a
    if not checking: return None
    a = array_of(x)
    return checksum(&a)


cdef int remember(Node node) except -1:
    """Store the checksums of the tensors that `node` saves. (The entry has `seq`, because a freed slot may have had the
    same address.)"""
    cdef Slot* s = slots_of(node)
    cdef int k
    if traces(): return 0
    filename, line, _ = where()
    for k in range(node.n_slots):
        if buffer_in(&s[k]) != NULL: known[<size_t>&s[k]] = node.seq, checksum_in(&s[k]), f"{filename}:{line}"


cdef int compare(Node node) except -1:
    """Raise InplaceError if a tensor that `node` saves has changed."""
    cdef Slot* s = slots_of(node)
    cdef int k
    if traces(): return 0
    for k in range(node.n_slots):
        if buffer_in(&s[k]) == NULL or sign_bits(&s[k]) != NULL or was_written(&s[k]): continue
        seq, then, place = known.get(<size_t>&s[k], (None, None, None))
        if seq != node.seq or checksum_in(&s[k]) == then: continue
        raise InplaceError(
            f"{node.name()} at {place} saved a tensor of shape {lay.shape_tuple(s[k].layout)} for backward, and its "
            f"memory has been written since, not through the tensor but through a NumPy array or another library that "
            f"shares it; write after backward, or use cygrad.tensor(...), which copies, instead of asarray")
