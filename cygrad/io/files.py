"""Files on disk: one that is read at offsets, one that replaces another atomically, and arrays as streams of bytes."""

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress

import numpy as np

from cygrad.core.errors import cut

PIECE = 1 << 20             # bytes that one step reads or copies: the only memory beside the tensors
AGAIN = "the file is damaged, or was made to look like what it is not; get it again from its source"


class Input:
    """A regular file open for reading at offsets. Its text form, for messages, is "load: 'model.npz'"; AGAIN follows in
    messages about its content."""

    def __init__(self, name, who):
        self.text = f"{who}: {cut(repr(name))}"
        self.fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)     # (a FIFO must not block)
        try:
            info = os.fstat(self.fd)
            if not stat.S_ISREG(info.st_mode):
                raise ValueError(f"{self} is not a regular file; pass the path of one, not a pipe or device")
            self.size = info.st_size
        except BaseException:
            self.close()
            raise

    def __str__(self):
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.fd)

    def read(self, offset, n):
        """The n bytes at `offset`."""
        found = bytearray(n)
        self.readinto(memoryview(found), offset)
        return found

    def readinto(self, memory, offset):
        """Fill `memory` with the bytes at `offset`. Raises ValueError if the file has become shorter."""
        while memory.nbytes:
            n = os.preadv(self.fd, [memory], offset)
            if not n: raise ValueError(f"{self} became shorter while it was read; load it when nothing writes it")
            memory, offset = memory[n:], offset + n


def bytes_of(array):
    """The memory of a contiguous array, as bytes."""
    return memoryview(array.reshape(-1).view(np.uint8))


def pieces(array):
    """The elements of an array in row-major order, as contiguous pieces: the array itself if it is contiguous, else
    copies of at most PIECE bytes, in one buffer. A bool is written as 0 or 1, whatever its byte is."""
    if array.flags.c_contiguous and array.dtype != bool:
        yield bytes_of(array)
        return
    steps = np.nditer(array, ["external_loop", "buffered", "zerosize_ok"], [["readonly", "contig"]], order="C",
                      buffersize=PIECE // array.itemsize)
    for piece in steps: yield bytes_of(piece.view(np.uint8) != 0 if array.dtype == bool else piece)


@contextmanager
def replacing(name, who):
    """A file for writing that replaces the file `name` at the end of the scope. It is written under another name in the
    same directory, flushed to disk and renamed, so there is the old file or the new one at every moment. An exception
    removes it. A symbolic link stays, and what it points to is replaced; the permissions stay too."""
    target = os.path.realpath(name)
    directory = os.path.dirname(target)
    temporary = os.path.join(directory, f".cygrad-{secrets.token_hex(8)}.tmp")
    try:
        mode = os.stat(target).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{who}: {cut(repr(name))} exists and is not a regular file; choose another path")
    except FileNotFoundError:
        mode = None
    try:
        with open(temporary, "xb") as file:
            if mode is not None: os.fchmod(file.fileno(), mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as e:
        with suppress(OSError): os.unlink(temporary)
        if isinstance(e, OSError) and e.errno and e.filename in (None, temporary): e.filename = name
        raise
    flush_directory(directory)


def flush_directory(directory):
    """Flush a rename to disk. Some network file systems cannot (EINVAL); there a power cut may undo the rename."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno != errno.EINVAL: raise
    finally:
        os.close(fd)
