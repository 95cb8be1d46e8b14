"""What a file says about one of its tensors, checked before memory is taken, and how its bytes become a tensor."""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.io.files import AGAIN, PIECE, bytes_of

STEP = PIECE // 16          # elements that are converted at a time


class Entry(NamedTuple):
    """A tensor in a file."""

    name: str
    kind: str               # the dtype, in the file's words
    stored: np.dtype        # dtype of the elements in the file; for bfloat16 it is uint16
    shape: tuple[int, ...]
    nbytes: int             # in the file
    place: Any              # for safetensors its offset, for npz its member and the offset in that
    fortran: bool = False   # column-major


def size_of(at, name, kind, itemsize, shape):
    """The number of bytes of a tensor in a file. Raises ValueError if no tensor can be that large."""
    if prod(max(n, 1) for n in shape) * itemsize >= 1 << 63:
        raise ValueError(f"{at}: the shape {described(shape)} of {described(name)} ({kind}) has more elements than can "
                         f"exist; {AGAIN}")
    return prod(shape) * itemsize


def loaded_dtype(entry, dtype, at):
    """The dtype of the tensor that an entry is loaded into; `dtype` is what the caller wants of floating ones."""
    if entry.kind == "BF16" or entry.stored.kind == "f":
        if dtype is not None: return dtype
        if entry.stored.itemsize == 2:
            half = "bfloat16" if entry.kind == "BF16" else "float16"
            raise ValueError(f"{at}: {described(entry.name)} is {half}, which cygrad does not have; load it into "
                             f"float32 with dtype=cygrad.float32")
    return entry.stored.newbyteorder("=")


def work_bytes(entry, dtype):
    """The bytes of memory that fill() needs beside the array."""
    if entry.stored == dtype and not entry.fortran: return 0
    n = entry.nbytes // entry.stored.itemsize
    return min(n, STEP) * (entry.stored.itemsize + max(dtype.itemsize, 4))


def fill(array, entry, stream, at, work):
    """Read the elements of an entry into `array`, which is contiguous. `stream.readinto(memory)` fills memory with the
    next bytes of the entry. `work` has work_bytes()."""
    if entry.stored == array.dtype and not entry.fortran:
        memory = bytes_of(array)
        for i in range(0, entry.nbytes, PIECE): stream.readinto(memory[i:i + PIECE])
    else:
        flat = array.T.flat if entry.fortran else array.reshape(-1)
        n = min(array.size, STEP)
        stored, rest = work[:n * entry.stored.itemsize].view(entry.stored), work[n * entry.stored.itemsize:]
        for i in range(0, array.size, max(n, 1)):
            piece = stored[:array.size - i]
            stream.readinto(bytes_of(piece))
            with np.errstate(all="ignore"): flat[i:i + piece.size] = converted(piece, entry.kind, array.dtype, rest)
    check_bools(array, entry, at)


def converted(piece, kind, dtype, work):
    """The elements as NumPy has them, in the memory `work`. A bfloat16 is the upper half of a float32."""
    if kind == "BF16":
        bits = work[:4 * piece.size].view(np.uint32)
        np.left_shift(piece, 16, out=bits, dtype=np.uint32)
        return bits.view(np.float32)
    made = work[:dtype.itemsize * piece.size].view(dtype)
    made[...] = piece
    return made


def check_bools(array, entry, at):
    """Raise ValueError if a bool is neither 0 nor 1."""
    if array.dtype != bool or array.size == 0: return
    largest = array.view(np.uint8).max()
    if largest > 1:
        raise ValueError(f"{at}: {described(entry.name)} is bool, so its bytes must be 0 or 1, got {largest}; {AGAIN}")


NAMES = {str(dtype) for dtype in DTYPES}        # names of the dtypes that cygrad has
