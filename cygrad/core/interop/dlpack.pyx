"""DLPack: tensors to and from other libraries without a copy.

The structs are those of dlpack.h 1.0 (https://dmlc.github.io/dlpack), in two forms. Only the versioned form has a flag
for read-only memory. An exported capsule holds the buffer as a lease. Imported memory is external; it is returned to
its owner when the last tensor on it is freed."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t, uintptr_t

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport check_lendable, copy_in, lend
from cygrad.core.graph.tensor cimport Tensor, data_of, is_tracked, ready
from cygrad.core.store.buffer cimport READONLY, Buffer, drop, hold
from cygrad.core.store.external cimport adopt_array
from cygrad.core.graph.construct cimport copy_plain, new_tensor
from cygrad.kernels.array cimport MAX_NDIM, N_DTYPES, Array, Layout, itemsize, kind_of

import cygrad.core.interop.pickling  # no-cython-lint: adds methods to Tensor
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.late_bound import bind, bind_methods

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil

cdef enum:
    CPU = 1                 # kDLCPU
    INTEGER = 0             # codes of dtypes
    UNSIGNED = 1
    FLOATING = 2
    BOOLEAN = 6
    FLAG_READ_ONLY = 1      # DLManagedTensorVersioned.flags
    FLAG_COPIED = 2

cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides        # in elements; NULL: row-major
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept nogil

cdef struct DLPackVersion:
    uint32_t major
    uint32_t minor

cdef struct DLManagedTensorVersioned:
    DLPackVersion version
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept nogil
    uint64_t flags
    DLTensor dl_tensor


# ---- export ----------------------------------------------------------------------------------------------------------

cdef struct Loan:           # an exported tensor, in one of the two forms
    DLManagedTensor older
    DLManagedTensorVersioned versioned
    Buffer* buffer
    int64_t shape[MAX_NDIM]
    int64_t strides[MAX_NDIM]


cdef void end(Loan* loan) noexcept with gil:
    loan.buffer.leases -= 1
    drop(loan.buffer)
    PyMem_RawFree(loan)


cdef void end_older(DLManagedTensor* m) noexcept nogil:
    if Py_IsInitialized(): end(<Loan*>m.manager_ctx)        # (at exit the system frees the memory)


cdef void end_versioned(DLManagedTensorVersioned* m) noexcept nogil:
    if Py_IsInitialized(): end(<Loan*>m.manager_ctx)


cdef void release_older(object capsule) noexcept:
    """The destructor of a capsule: release the memory, unless a consumer has taken it over."""
    cdef DLManagedTensor* m
    if PyCapsule_IsValid(capsule, "dltensor"):
        m = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        m.deleter(m)


cdef void release_versioned(object capsule) noexcept:
    cdef DLManagedTensorVersioned* m
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        m = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        m.deleter(m)


cdef int code_of(int dtype) noexcept:
    """DLPack's code for the kind of a dtype."""
    cdef char kind = kind_of(dtype)
    return BOOLEAN if kind == c"b" else FLOATING if kind == c"f" else UNSIGNED if kind == c"u" else INTEGER


cdef void describe(DLTensor* d, Tensor t, Loan* loan) noexcept:
    for i in range(t.layout.ndim):
        loan.shape[i] = t.layout.shape[i]
        loan.strides[i] = t.layout.strides[i]
    d.data = data_of(t)
    d.device.device_type, d.device.device_id = CPU, 0
    d.ndim = t.layout.ndim
    d.dtype.code = code_of(t.dtype)
    d.dtype.bits, d.dtype.lanes = 8 * itemsize(t.dtype), 1
    d.shape, d.strides = loan.shape, loan.strides
    d.byte_offset = 0


cdef bint is_versioned(max_version) except -1:
    """Whether the consumer reads DLPack 1.0, which has a read-only flag."""
    if max_version is None: return False
    if not isinstance(max_version, tuple) or len(max_version) != 2:
        raise TypeError(f"__dlpack__: max_version must be None or a tuple (major, minor), got {max_version!r}")
    return max_version[0] >= 1


def to_dlpack(Tensor self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule that shares this tensor's memory (with copy=True: that of a copy), for the `from_dlpack` of
    another library. It is of version 1.0 if max_version allows that, else of the older form. The memory of a variable,
    or of a tensor in a graph, is exported read-only; the older form has no flag for that, so it raises BufferError.
    While recording, such a tensor raises RuntimeError, as in numpy()."""
    cdef Tensor t = self
    cdef Loan* loan
    cdef bint readonly, versioned = is_versioned(max_version)
    if stream is not None:
        raise BufferError(f"__dlpack__: CPU memory has no streams, so stream must be None; got {described(stream)}")
    if dl_device is not None and tuple(dl_device) != (CPU, 0):
        raise BufferError(f"__dlpack__: this tensor is in CPU memory, device (1, 0), and cannot be moved to device "
                          f"{tuple(dl_device)}")
    check_lendable(self, "__dlpack__()")
    if copy: t = copy_plain(self)
    readonly = not copy and (is_tracked(t) or t.buffer.flags & READONLY)
    if readonly and not versioned:
        raise BufferError("__dlpack__: this memory is read-only, but the consumer requested DLPack before 1.0, which "
                          "has no read-only flag; pass detach() or copy()")
    ready(t)
    loan = <Loan*>PyMem_RawMalloc(sizeof(Loan))
    if loan == NULL: raise MemoryError("no memory for a DLPack capsule")
    if versioned:
        loan.versioned.version.major, loan.versioned.version.minor = 1, 0
        loan.versioned.manager_ctx, loan.versioned.deleter = loan, end_versioned
        loan.versioned.flags = (FLAG_READ_ONLY if readonly else 0) | (FLAG_COPIED if copy else 0)
        describe(&loan.versioned.dl_tensor, t, loan)
    else:
        loan.older.manager_ctx, loan.older.deleter = loan, end_older
        describe(&loan.older.dl_tensor, t, loan)
    loan.buffer = t.buffer
    hold(t.buffer)
    t.buffer.leases += 1
    try:
        if versioned: return PyCapsule_New(&loan.versioned, "dltensor_versioned", release_versioned)
        return PyCapsule_New(&loan.older, "dltensor", release_older)
    except:
        end(loan)
        raise


def dlpack_device(Tensor self):
    """(1, 0), DLPack's number for CPU memory."""
    return CPU, 0


# ---- import ----------------------------------------------------------------------------------------------------------

cdef class Import:
    """Memory imported by DLPack, which is returned to its owner when the last tensor on it is freed."""
    cdef DLManagedTensor* older
    cdef DLManagedTensorVersioned* versioned

    def __dealloc__(self):
        if self.older != NULL and self.older.deleter != NULL: self.older.deleter(self.older)
        if self.versioned != NULL and self.versioned.deleter != NULL: self.versioned.deleter(self.versioned)


cdef int dtype_of(const DLDataType* d) except -1:
    cdef int number
    for number in range(N_DTYPES if d.lanes == 1 else 0):
        if d.code == code_of(number) and d.bits == 8 * itemsize(number): return number
    raise TypeError(f"from_dlpack: the elements have DLPack dtype code {d.code} with {d.bits} bits and {d.lanes} "
                    f"lanes; cygrad has {', '.join(map(str, DTYPES))}; convert them first")


cdef Layout* layout_of(const DLTensor* d) except NULL:
    """The layout of a capsule's tensor, after checking its sizes and pointers."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Layout* l
    cdef int i
    if d.ndim < 0 or d.ndim > MAX_NDIM:
        raise ValueError(f"from_dlpack: a tensor has 0 to {MAX_NDIM} dimensions, but this capsule has {d.ndim}")
    if d.ndim and d.shape == NULL: raise ValueError("from_dlpack: this capsule has dimensions, but no shape")
    for i in range(d.ndim):
        sizes[i] = d.shape[i]
        if sizes[i] < 0: raise ValueError(f"from_dlpack: this capsule has a negative size, {sizes[i]}")
    l = lay.dense(d.ndim, sizes)
    if d.strides != NULL:
        for i in range(d.ndim): l.strides[i] = d.strides[i]
        lay.finish(l)
    if l.size and d.data == NULL:
        lay.decref(l)
        raise ValueError("from_dlpack: this capsule has elements, but no memory")
    return l


cdef object capsule_from(x, copy):
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__ and __dlpack_device__, got {type(x).__name__}")
    device = tuple(x.__dlpack_device__())
    if device[0] != CPU:
        raise BufferError(f"from_dlpack: the memory is on device {tuple(map(int, device))}; cygrad reads only CPU "
                          f"memory, device (1, 0): move it there first")
    try:
        return x.__dlpack__(max_version=(1, 0), **({} if copy is None else {"copy": copy}))
    except TypeError:                               # an exporter from before these arguments existed
        return x.__dlpack__()


def from_dlpack(x: Any, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of `x`, any object with __dlpack__ (a PyTorch tensor, a NumPy array, ...), with
    its shape, strides and dtype; read-only if the exporter sets that flag. copy: True copies, False never copies, None
    copies only misaligned elements. device: None or "cpu". Raises BufferError for memory that is not on the CPU, and
    TypeError for dtypes that cygrad does not have."""
    cdef Import owner = Import.__new__(Import)
    cdef DLManagedTensor* older = NULL
    cdef DLManagedTensorVersioned* versioned = NULL
    cdef DLTensor* d
    cdef Array a
    cdef Layout* l
    cdef bint readonly = False, copied = False
    if device is not None and device != "cpu":
        raise ValueError(f"from_dlpack: device must be None or \"cpu\", got {described(device)}")
    capsule = capsule_from(x, copy)
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        if versioned.version.major != 1:
            raise BufferError(f"from_dlpack: the capsule is of DLPack "
                              f"{versioned.version.major}.{versioned.version.minor}; cygrad reads 1.x and earlier")
        d = &versioned.dl_tensor
        readonly, copied = versioned.flags & FLAG_READ_ONLY != 0, versioned.flags & FLAG_COPIED != 0
    elif PyCapsule_IsValid(capsule, "dltensor"):
        older = <DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")
        d = &older.dl_tensor
    else:
        raise BufferError(f"from_dlpack: __dlpack__ returned {described(capsule)}, which is not a DLPack capsule, or "
                          f"one that is already consumed")
    if d.device.device_type != CPU:
        raise BufferError(f"from_dlpack: the capsule is on device ({d.device.device_type}, {d.device.device_id}); "
                          f"cygrad reads only CPU memory, device (1, 0)")
    a.dtype = dtype_of(&d.dtype)
    a.data = <char*>d.data + d.byte_offset
    a.layout = l = layout_of(d)
    try:
        if <uintptr_t>a.data % itemsize(a.dtype) and l.size:
            if copy is not None and not copy:
                raise ValueError(f"from_dlpack: the elements, of {itemsize(a.dtype)} bytes, are misaligned and must be "
                                 f"copied, but copy is False")
            copy, copied = True, False
        if copy and not copied: return copy_in(lend(&a, NULL, False), a.dtype)
        if older != NULL:                           # from here on `owner` calls the deleter
            PyCapsule_SetName(capsule, "used_dltensor")
            owner.older = older
        else:
            PyCapsule_SetName(capsule, "used_dltensor_versioned")
            owner.versioned = versioned
        return new_tensor(adopt_array(&a, owner, readonly), lay.incref(l), a.dtype)
    finally:
        lay.decref(l)


bind(from_dlpack=from_dlpack)
bind_methods(Tensor, __dlpack__=to_dlpack, __dlpack_device__=dlpack_device)
