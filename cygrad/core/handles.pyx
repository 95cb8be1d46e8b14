"""Files that are read, mapped or replaced. Ctrl-C leaves none of them open, and no temporary file.

Python handles a signal between two instructions of Python code, so also between a call of os.open and the assignment of
its result, or on entry to an __exit__. These classes are compiled, so that a descriptor has an owner from its first
moment on, and is closed, and a temporary file removed, by a method that no signal divides, or with the owner."""

cimport cython

import errno
import io
import os
import stat

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_SetFromErrno
from posix.mman cimport MAP_FAILED, MAP_SHARED, PROT_READ, mmap, munmap
from posix.unistd cimport close as close_descriptor
from posix.unistd cimport unlink

from cygrad.core.errors import cut


@cython.final
@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Input:
    """A regular file open for reading at offsets, for the function `who`. Its text form, for messages, is
    "load: 'model.npz'"."""
    cdef readonly int fd            # -1: closed
    cdef readonly str text
    cdef readonly object size       # bytes

    def __cinit__(self):
        self.fd, self.text, self.size = -1, "", 0

    @cython.embedsignature.format("c")
    def __init__(self, str name, str who):
        self.close()
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

    def __dealloc__(self):
        if self.fd >= 0: close_descriptor(self.fd)

    def __str__(self):
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    cpdef close(self):
        """Close the file, unless it is closed."""
        cdef int fd = self.fd
        self.fd = -1
        if fd >= 0: os.close(fd)

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


@cython.final
@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Mapped:
    """The bytes of an Input, mapped and read-only, by the buffer protocol. It needs no descriptor, so the Input can be
    closed. Raises OSError as the system does."""
    cdef char* memory
    cdef size_t nbytes

    def __cinit__(self, Input file not None):
        cdef void* memory
        if os.fstat(file.fd).st_size < file.size:
            raise ValueError(f"{file} became shorter while it was read; load it when nothing writes it")
        self.nbytes = file.size
        memory = mmap(NULL, self.nbytes, PROT_READ, MAP_SHARED, file.fd, 0)
        if memory == MAP_FAILED: PyErr_SetFromErrno(OSError)
        self.memory = <char*>memory

    def __dealloc__(self):
        if self.memory != NULL: munmap(self.memory, self.nbytes)

    def __getbuffer__(self, Py_buffer* view, int wanted):
        PyBuffer_FillInfo(view, self, self.memory, self.nbytes, True, wanted)


@cython.final
@cython.no_gc_clear                                 # __dealloc__ removes the temporary file
@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Replacing:
    """A scope with a file for writing that replaces the file `name` at its end, for the function `who`. It is written
    under another name in the same directory, flushed to disk and renamed, so there is the old file or the new one at
    every moment. An exception removes it. A symbolic link stays, and what it points to is replaced; the permissions
    stay too."""
    cdef str name, who, target, temporary
    cdef bytes path                 # path of the temporary file, while there is one
    cdef object file

    @cython.embedsignature.format("c")
    def __init__(self, str name not None, str who not None):
        self.name, self.who = name, who

    def __dealloc__(self):
        self.discard()

    def __enter__(self):
        if self.name is None or self.path is not None:
            raise RuntimeError("this scope is already open, or was not made for a file; make another one")
        target = os.path.realpath(self.name)
        temporary = os.path.join(os.path.dirname(target), f".cygrad-{os.urandom(8).hex()}.tmp")
        try:
            mode = os.stat(target).st_mode
            if not stat.S_ISREG(mode):
                raise ValueError(f"{self.who}: {cut(repr(self.name))} exists and is not a regular file; choose another "
                                 f"path")
        except FileNotFoundError:
            mode = None
        self.target, self.temporary, path = target, temporary, os.fsencode(temporary)
        try:
            self.file = io.open(temporary, "xb")
            self.path = path
            if mode is not None: os.fchmod(self.file.fileno(), mode & 0o777)
        except BaseException as e:
            self.failed(e)
            raise
        return self.file

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.path is None: raise RuntimeError("this scope is not open, so it cannot be closed")
        if kind is not None:
            self.failed(value)
            return
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            os.replace(self.temporary, self.target)
            self.path = None
        except BaseException as e:
            self.failed(e)
            raise
        self.file = None
        flush_directory(os.path.dirname(self.target))

    cdef int failed(self, error) except -1:
        """Discard the file, and let an error of the system name the file that was asked for."""
        self.discard()
        if not isinstance(error, OSError) or not error.errno: return 0
        if error.filename is None or error.filename == self.temporary: error.filename = self.name

    cdef int discard(self) except -1:
        """Close and remove the temporary file, if there is one."""
        file, path = self.file, self.path
        self.file = self.path = None
        try:
            if file is not None: file.raw.close()   # (what is in the buffer is not written any more)
        except OSError:                             # (such as those of network file systems)
            pass
        finally:
            if path is not None: unlink(PyBytes_AS_STRING(path))


cdef int flush_directory(directory) except -1:
    """Flush a rename to disk. Some network file systems cannot (EINVAL); there a power cut may undo the rename."""
    cdef int fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno != errno.EINVAL: raise
    finally:
        os.close(fd)
