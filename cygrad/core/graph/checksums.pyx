"""CYGRAD_CHECK_SAVED=1: what is kept for backward is compared with what it was when it was kept, by checksum.

Versions count the writes that go through tensors. NumPy, or whoever else shares the memory, writes without them, and
the gradient would be wrong without a word. With the switch on every kept tensor is read twice more; without it nodes
pay one test."""

import os

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport Node, slots_of
from cygrad.core.graph.slots cimport Slot, buffer_in, elements, sign_bits, was_written
from cygrad.kernels.array cimport Array, itemsize
from cygrad.kernels.driver cimport STRIP, gather

from cygrad.core.errors import InplaceError
from cygrad.core.source import where

checking = os.environ.get("CYGRAD_CHECK_SAVED", "0") not in ("", "0")

cdef dict known = {}        # address of a slot -> (number of its node, checksum, "file:line" of the operation)


cdef bytes checksum(Slot* s):
    """Of the elements that the slot sees."""
    import hashlib

    cdef Array a = elements(s)
    cdef char strip[STRIP * 8]
    cdef Py_ssize_t start, count
    digest = hashlib.blake2b(digest_size=16)
    if s.layout.dense: digest.update(<const char[:s.layout.size * itemsize(s.dtype)]>a.data if s.layout.size else b"")
    for start in range(0, 0 if s.layout.dense else s.layout.size, STRIP):
        count = min(<Py_ssize_t>STRIP, s.layout.size - start)
        gather(strip, &a, start, count)
        digest.update(strip[:count * itemsize(s.dtype)])
    return digest.digest()


cdef int remember(Node node) except -1:
    """The checksums of all that `node` keeps. (A slot's address may have been that of a slot that is gone.)"""
    cdef Slot* s = slots_of(node)
    cdef int k
    filename, line, _ = where()
    for k in range(node.n_slots):
        if buffer_in(&s[k]) != NULL: known[<size_t>&s[k]] = node.seq, checksum(&s[k]), f"{filename}:{line}"
    return 0


cdef int compare(Node node) except -1:
    """That all that `node` keeps is what it was."""
    cdef Slot* s = slots_of(node)
    cdef int k
    for k in range(node.n_slots):
        if buffer_in(&s[k]) == NULL or sign_bits(&s[k]) != NULL or was_written(&s[k]): continue
        seq, then, place = known.get(<size_t>&s[k], (None, None, None))
        if seq != node.seq or checksum(&s[k]) == then: continue
        raise InplaceError(
            f"{node.name()} at {place} kept a tensor of shape {lay.shape_tuple(s[k].layout)} for backward, and its "
            f"memory has been written since, past the tensor: through a NumPy array or another library that shares "
            f"it; write after backward, or give cygrad.tensor(...), which copies, in place of asarray")
    return 0
