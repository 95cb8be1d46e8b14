"""The wording of errors: making and reading tensors, sharing memory, pickling."""

import copy
import ctypes
import hashlib
import operator

import numpy as np
from capsules import Exporter, Speaking
from peers import torch

import cygrad as cg
from cygrad.core.pickling import load_tensor
from wrong import RESULT, VARIABLE, recording, without_shape

TORCH = ("an operand is a tensor of cygrad and the other one of torch; convert one: cygrad.from_dlpack(t.detach()) or "
         "torch.from_dlpack(x.detach()), which shares memory and has no gradient of the other library")

CASES = [
    (lambda: cg.zeros(2).__dlpack__(max_version=()), TypeError,
     "__dlpack__: max_version must be None or a tuple (major, minor), got ()"),
    (lambda: cg.Tensor([1.0]), TypeError,
     "Tensor is not instantiated; call cygrad.tensor(data), asarray, zeros, ones or similar"),
    (lambda: cg.zeros(2, dtype="nonsense"), TypeError,
     "'nonsense' is not a dtype; cygrad has <*>"),
    (lambda: cg.zeros(2, dtype="float16"), TypeError,
     "cygrad has no dtype float16; it has <*>; cast to one of them first"),
    (lambda: cg.set_default_dtype("int64"), TypeError,
     "the default dtype must be float32 or float64, got int64"),
    (lambda: cg.ones(2, dtype="uint64") + cg.ones(2, dtype="int8"), TypeError,
     "uint64 and int8 have no common integer dtype; convert one with astype"),
    (lambda: cg.tensor(["a"]), TypeError,
     "a tensor holds numbers, but this list has dtype <U1; cygrad has <*>"),
    (lambda: cg.tensor([[1, 2], [3]]), ValueError,
     "the data is not a rectangular array of numbers: <*>"),
    (lambda: cg.asarray(np.zeros((1,) * 17)), ValueError,
     "a tensor has at most 16 dimensions, got an array of shape (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1)"),
    (lambda: cg.zeros((1,) * 17), ValueError,
     "a tensor has at most 16 dimensions, got a shape of 17"),
    (lambda: cg.zeros((2, -1)), ValueError,
     "a shape cannot have negative sizes, got (2, -1)"),
    (lambda: cg.zeros(2.5), TypeError,
     "a shape must be an int or a tuple of ints, got 2.5"),
    (lambda: cg.zeros((2**40, 2**40)), ValueError,
     "a shape of (1099511627776, 1099511627776) has too many elements"),
    (lambda: cg.zeros((2**62,)), ValueError,
     "a shape of (4611686018427387904,) has too many elements"),
    (lambda: cg.zeros(2**70), ValueError,
     "a shape of (1180591620717411303424,) has too many elements"),
    (lambda: cg.broadcast_to(cg.zeros(()), (2**40, 2**40)), ValueError,
     "a shape of (1099511627776, 1099511627776) has too many elements"),
    (lambda: cg.zeros(0).reshape(2**40, 2**40), ValueError,
     "reshape: a tensor of shape (0,) has 0 elements, which do not fill shape (1099511627776, 1099511627776)"),
    (lambda: cg.stack([cg.broadcast_to(cg.zeros(()), (2**48,))] * 2), ValueError,
     "a shape of (2, 281474976710656) has too many elements"),
    (lambda: cg.concat([cg.broadcast_to(cg.zeros(()), (2**48,))] * 40000), ValueError,
     "concat: the sizes of dimension 0 add up to 11258999068426240000; a tensor has at most 281474976710656 elements"),
    (lambda: cg.pad(cg.zeros(3), 2**62), ValueError,
     "pad: dimension 0 of size 3 with margins of 4611686018427387904 and 4611686018427387904 would have size "
     "9223372036854775811; a tensor has at most 281474976710656 elements"),
    (lambda: cg.pad(cg.zeros(3), [(0, 2**70)], "edge"), ValueError,
     "pad: dimension 0 of size 3 with margins of 0 and 1180591620717411303424 would have size 1180591620717411303427; "
     "a tensor has at most 281474976710656 elements"),
    (lambda: cg.pad(cg.zeros((2, 2)), 2**30), ValueError,
     "a shape of (2147483650, 2147483650) has too many elements"),
    (lambda: cg.one_hot([0, 1], 2**63), ValueError,
     "one_hot: 2 labels of 9223372036854775808 classes each are 18446744073709551616 numbers; a tensor has at most "
     "281474976710656 elements"),
    (lambda: cg.arange(2**62), ValueError,
     "arange: from 0 up to 4611686018427387904 by 1 there are 4611686018427387904 numbers; a tensor has at most "
     "281474976710656 elements"),
    (lambda: cg.arange(0, 1e300, 1e-300), ValueError,
     "arange: from 0 up to 1e+300 by 1e-300 there are endless numbers; a tensor has at most 281474976710656 elements"),
    (lambda: cg.arange(float("inf")), ValueError,
     "arange: from 0 up to inf by 1 is not a range; give finite numbers"),
    (lambda: cg.linspace(0, 1, 2**64), ValueError,
     "linspace: 18446744073709551616 numbers; a tensor has at most 281474976710656 elements"),
    (lambda: cg.eye(2**40), ValueError,
     "eye: 1099511627776 rows of 1099511627776 are 1208925819614629174706176 numbers; a tensor has at most "
     "281474976710656 elements"),
    (lambda: cg.split(cg.zeros(3), 2**70), ValueError,
     "split: dimension 0 of size 3 cannot be split into 1180591620717411303424 equal parts; pass a list of the indices "
     "to split at"),
    (lambda: cg.random.normal((2**40, 2**40)), ValueError,
     "a shape of (1099511627776, 1099511627776) has too many elements"),
    (lambda: cg.broadcast_to(cg.zeros(2), 1.5), TypeError,
     "a shape must be an int or a tuple of ints, got 1.5"),
    (lambda: cg.zeros(2).reshape("a"), TypeError,
     "a shape must be an int or a tuple of ints, got 'a'"),
    (lambda: cg.empty(2**47, dtype="float64"), MemoryError,
     "1125899906842624 bytes are more than any machine has"),
    (lambda: cg.empty(2**44, dtype="float64"), MemoryError,
     "the system cannot provide a block of 140737488355328 bytes; cygrad has committed <*> bytes, "
     "<*> of them in live tensors"),
    (lambda: cg.arange(0, 3, 0), ValueError,
     "arange: step must not be 0"),
    (lambda: len(cg.tensor(1.0)), TypeError,
     "a 0-d tensor has no length"),
    (lambda: list(cg.tensor(1.0)), TypeError,
     "a 0-d tensor cannot be iterated over"),
    (lambda: cg.zeros(2).item(), ValueError,
     "item() takes a tensor of one element; this one has shape (2,)"),
    (lambda: bool(cg.zeros(2)), ValueError,
     "the truth value of a tensor of shape (2,) is ambiguous; use any() or all()"),
    (lambda: [1, 2][cg.tensor([0, 1])], TypeError,
     "a tensor of shape (2,) cannot be an index; it must have one element"),
    (lambda: [1, 2][cg.tensor(1.0)], TypeError,
     "a float32 tensor cannot be an index; only integer tensors can"),
    (lambda: cg.zeros(2).__array__("float64", copy=False), ValueError,
     "a float32 tensor cannot become float64 without a copy"),
    (lambda: recording(lambda: VARIABLE().numpy()), RuntimeError,
     "numpy() of a tensor of shape (2,) that gradients flow through, while recording: the gradients would be lost "
     "silently; use detach() first, or pause() the recording"),
    (lambda: cg.asarray((ctypes.POINTER(ctypes.c_int) * 2)()), TypeError,
     "a tensor holds numbers, but this <*> does not: <*>"),
    (lambda: hashlib.sha256(cg.zeros((2, 3)).T), BufferError,
     "this tensor is not contiguous in the requested order; pass its copy()"),
    (lambda: cg.zeros(2).__dlpack__(stream=1), BufferError,
     "__dlpack__: CPU memory has no streams, so stream must be None; got 1"),
    (lambda: cg.zeros(2).__dlpack__(dl_device=(2, 0)), BufferError,
     "__dlpack__: this tensor is in CPU memory, device (1, 0), and cannot be moved to device (2, 0)"),
    (lambda: VARIABLE().__dlpack__(), BufferError,
     "__dlpack__: this memory is read-only, but the consumer requested DLPack before 1.0, which has no read-only flag; "
     "pass detach() or copy()"),
    (lambda: cg.from_dlpack(3), TypeError,
     "from_dlpack takes an object with __dlpack__ and __dlpack_device__, got int"),
    (lambda: cg.from_dlpack(np.ones(2), device="cuda"), ValueError,
     "from_dlpack: device must be None or \"cpu\", got 'cuda'"),
    (lambda: cg.from_dlpack(Exporter(said_device=2)), BufferError,
     "from_dlpack: the memory is on device (2, 0); cygrad reads only CPU memory, device (1, 0): move it there first"),
    (lambda: cg.from_dlpack(Exporter(device=2)), BufferError,
     "from_dlpack: the capsule is on device (2, 0); cygrad reads only CPU memory, device (1, 0)"),
    (lambda: cg.from_dlpack(Exporter(major=2)), BufferError,
     "from_dlpack: the capsule is of DLPack 2.0; cygrad reads 1.x and earlier"),
    (lambda: cg.from_dlpack(Speaking(None)), BufferError,
     "from_dlpack: __dlpack__ returned None, which is not a DLPack capsule, or one that is already consumed"),
    (lambda: cg.from_dlpack(Exporter(lanes=2)), TypeError,
     "from_dlpack: the elements have DLPack dtype code 2 with 32 bits and 2 lanes; cygrad has <*>; convert them first"),
    (lambda: cg.from_dlpack(Exporter(ndim=17)), ValueError,
     "from_dlpack: a tensor has 0 to 16 dimensions, but this capsule has 17"),
    (lambda: cg.from_dlpack(without_shape()), ValueError,
     "from_dlpack: this capsule has dimensions, but no shape"),
    (lambda: cg.from_dlpack(Exporter(shape=(-1,))), ValueError,
     "from_dlpack: this capsule has a negative size, -1"),
    (lambda: cg.from_dlpack(Exporter(data=False)), ValueError,
     "from_dlpack: this capsule has elements, but no memory"),
    (lambda: cg.from_dlpack(Exporter(shape=(4,), offset=2), copy=False), ValueError,
     "from_dlpack: the elements, of 4 bytes, are misaligned and must be copied, but copy is False"),
    (lambda: load_tensor(b"123", "float32", (1,), None, False), ValueError,
     "a pickled float32 tensor of shape (1,) has 4 bytes, but the data has 3"),
    (lambda: copy.deepcopy(RESULT()), RuntimeError,
     "deepcopy of this result of mul, of shape (2,): a copy would be outside the graph; if that is intended, copy its "
     "detach()"),
    (lambda: cg.zeros(2) + torch.zeros(2), TypeError, TORCH),
    (lambda: torch.zeros((2, 2)) @ cg.zeros((2, 2)), TypeError, TORCH),
    (lambda: torch.zeros(2) == cg.zeros(2), TypeError, TORCH),
    (lambda: operator.iadd(cg.zeros(2), torch.zeros(2)), TypeError, TORCH),
]
