"""DLPack capsules made by hand, and exporters with any description of their memory."""

import ctypes


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Inner(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Older(ctypes.Structure):
    _fields_ = [("inner", Inner), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("inner", Inner)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """Memory of six floats, and a capsule with any description of it."""

    def __init__(self, shape=(2, 3), strides=None, code=2, bits=32, lanes=1, device=1, flags=0, major=None, ndim=None,
                 offset=0, data=True, deleter=True, said_device=1):
        self.numbers = (ctypes.c_float * 7)(*range(7))
        self.sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.steps = (ctypes.c_int64 * max(1, len(shape)))(*(strides or ()))
        self.deleted = 0
        self.said_device = said_device
        self.managed = Older() if major is None else Versioned()
        if major is not None:
            self.managed.major, self.managed.flags = major, flags
        self.delete = DELETER(self._delete)
        if deleter:
            self.managed.deleter = self.delete
        inner = self.managed.inner
        inner.data = ctypes.addressof(self.numbers) if data else None
        inner.device.type = device
        inner.ndim = len(shape) if ndim is None else ndim
        inner.dtype.code, inner.dtype.bits, inner.dtype.lanes = code, bits, lanes
        inner.shape = self.sizes
        if strides:
            inner.strides = self.steps
        inner.byte_offset = offset
        self.name = b"dltensor" if major is None else b"dltensor_versioned"
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.said_device, 0

    def __dlpack__(self, **_):
        return self.capsule


class Speaking:
    def __init__(self, answer):
        self.answer = answer

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **kwargs):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class OldFashioned(Speaking):
    def __dlpack__(self):
        return self.answer
