"""The wording of errors: files. FILES are malformed and hostile files; tests/io/test_hostile.py bounds their memory."""

import os
import tempfile

import numpy as np
from peers import torch
from crafted import archive, member, npy, npz, one, reading, safetensors
from wrong import freed

import cygrad as cg
from cygrad.core.handles import Replacing
from cygrad.core.interop.numpy import Lease

AGAIN = "; the file is damaged, or was made to look like what it is not; get it again from its source"
F4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
X = '{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]'


def loading(wording, content, **keywords):
    return reading(content, **keywords), ValueError, f"load: <*>{wording}"


def malformed(wording, header, data=b"\0" * 8):
    return loading(f" has a malformed header: {wording}{AGAIN}", safetensors(header, data))


def archived(wording, content, **keywords):
    return reading(content, ".npz", **keywords), ValueError, f"load: <*>{wording}"


def damaged(wording, content, **keywords):
    return archived(f" is a damaged .npz file: {wording}{AGAIN}", content, **keywords)


def header(wording, text, **changes):
    return archived(f": 'x' has a malformed header: {wording}{AGAIN}", npz(npy(text, **changes)))



def zipped(content):
    return member("", content, method=8)["data"]


def tail():
    """An archive whose member has a byte after the end of the compressed data."""
    m = member("x.npy", npy(), method=8)
    return archive({**m, "data": m["data"] + b"\0", "packed": m["packed"] + 1})


def bomb(mebibytes):
    """A small archive with an array of so many MiB, which it promises only."""
    n = (mebibytes << 20) + len(npy(F4.replace("2", str(mebibytes << 18)), b""))
    m = member("x.npy", npy(F4.replace("2", str(mebibytes << 18)), bytes(1000)), method=8, nbytes=n)
    return archive({**m, "data": m["data"] + bytes(n // 1000), "packed": n // 1000})


SAFETENSORS = [
    loading(f" has 0 bytes; a .safetensors file begins with 8 bytes for the length of its header{AGAIN}", b""),
    loading(f" has 7 bytes; a .safetensors file begins with 8 bytes for the length of its header{AGAIN}", b"\0" * 7),
    loading(f" promises a header of 18,446,744,073,709,551,615 bytes, more than the 100,000,000 of the format{AGAIN}",
            b"\xff" * 8 + b"{}"),
    loading(f" is truncated: it promises a header of 3 bytes, but 2 follow{AGAIN}", b"\3" + b"\0" * 7 + b"{}"),
    loading(f" is not a .safetensors file: its header must be a JSON object{AGAIN}", safetensors("")),
    loading(f" is not a .safetensors file: its header must be a JSON object{AGAIN}", safetensors(" {}")),
    loading(f" is not a .safetensors file: its header must be a JSON object{AGAIN}", safetensors("[" * 100_000)),
    malformed("it must be UTF-8, got another byte at 2", b'{"\xff":0}'),
    malformed("a name must be at character 1, got '1:2}'", "{1:2}"),
    malformed("a name must be at character 1, got its end", "{"),
    malformed("':' must be at character 4, got '}'", '{"x"}'),
    malformed("'{' must be at character <*>, got '[[[[[[[[[[[[[[[[[[[['", '{"x":' + "[" * 100_000),
    malformed("a tensor has dtype, shape and data_offsets, got 'a'", '{"x":' + '{"a":' * 10_000),
    malformed("'[' must be at character <*>, got 'null}}'", '{"x":{"dtype":"F32","shape":null}}'),
    malformed("'x' must have dtype, shape and two data_offsets", '{"x":{"dtype":"F32","shape":[2]}}'),
    malformed("'x' must have dtype, shape and two data_offsets",
              '{"x":{"dtype":"F32","shape":[2],"data_offsets":[8]}}'),
    malformed("'dtype' is in it twice", '{"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
    malformed("'x' is in it twice", X + '},"\\u0078":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
    malformed("a tensor has dtype, shape and data_offsets, got 'spam'", X + ',"spam":1}}'),
    *[malformed("a non-negative integer in shape must be at character <*>, got <*>",
                f'{{"x":{{"dtype":"F32", "shape":[{got}], "data_offsets":[0,8]}}}}')
      for got in ("-2", "2.0", "2e0", "true", "NaN", "Infinity", '"2"', "02", "[2]", "null", "184467440737095516150")],
    malformed("shape must have at most 16 integers, got more",
              f'{{"x":{{"dtype":"F32","shape":{[1] * 17},"data_offsets":[0,8]}}}}'),
    malformed("',' or ']' must be at character <*>, got '2],\"data_offsets\":[0'",
              '{"x":{"dtype":"F32","shape":[2 2],"data_offsets":[0,8]}}'),
    malformed("',' or '}' must be at character <*>, got '\"y\":1}'", X + '}"y":1}'),
    malformed("its end must be at character <*>, got '{}'", X + "}}{}"),
    malformed("the name of a dtype must be at character <*>, got '32,\"shape\":[2],\"data'",
              '{"x":{"dtype":32,"shape":[2],"data_offsets":[0,8]}}'),
    malformed("the string at character 1 has an invalid escape", '{"\\ud800":{}}'),
    malformed("the string at character 1 has an invalid escape", '{"\\x":{}}'),
    malformed("a string for 'k' must be at character <*>, got '1}}'", '{"__metadata__":{"k":1}}'),
    malformed("'{' must be at character <*>, got '\"k\"}'", '{"__metadata__":"k"}'),
    *[loading(f": 'x' has the dtype '{d}'; cygrad loads BOOL, U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, "
              f"F64; convert it with the library that wrote it", one(d, (8,)))
      for d in ("F8_E4M3", "F8_E5M2", "F4", "C64", "f32", "")],
    loading(": 'x' is float16, which cygrad does not have; load it into float32 with dtype=cygrad.float32",
            one("F16", (4,))),
    loading(": 'x' is bfloat16, which cygrad does not have; load it into float32 with dtype=cygrad.float32",
            one("BF16", (4,))),
    *[loading(f": the shape {shape} of 'x' (F32) has more elements than can exist{AGAIN}", one(shape=shape))
      for shape in ((2 ** 61,), (0, 2 ** 63), (2 ** 32, 2 ** 32))],
    loading(f": the shape (9223372036854775807, <*> of 'x' (F32) has more elements than can exist{AGAIN}",
            one(shape=(2 ** 63 - 1,) * 16)),
    *[loading(f": 'x', F32 of shape (2,), takes 8 bytes, but its data_offsets are {a} and {b}{AGAIN}",
              one(offsets=(a, b))) for a, b in ((0, 4), (8, 0), (0, 9))],
    loading(f": 'x', F64 of shape (2,), takes 16 bytes, but its data_offsets are 0 and 8{AGAIN}", one("F64")),
    *[loading(f": the data of 'x' begins at byte {n}, but what is before it ends at 0; data must not overlap or have "
              f"gaps{AGAIN}", one(offsets=(n, n + 8), data=b"\0" * 16)) for n in (1, 8)],
    loading(f": the data of 'y' begins at byte 4, but what is before it ends at 8; data must not overlap or have gaps"
            f"{AGAIN}", safetensors(X + '},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b"\0" * 8)),
    loading(f": the data of 'y' begins at byte 0, but what is before it ends at 8; data must not overlap or have gaps"
            f"{AGAIN}", safetensors(X + '},"y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', b"\0" * 8)),
    *[loading(f" has {n} bytes of data, but its header promises 8; it is truncated, or something was appended{AGAIN}",
              one(data=b"\0" * n)) for n in (0, 7, 9)],
    loading(f": 'x' is bool, so its bytes must be 0 or 1, got 255{AGAIN}",
            one("BOOL", (8,), data=b"\1\0\xff" + b"\0" * 5)),
    loading(f": 'x' is bool, so its bytes must be 0 or 1, got 2{AGAIN}", one("BOOL", (8,), data=b"\2" * 8), mmap=True),
]

ARCHIVES = [
    *[archived(" is not an .npz file: it does not end with the directory of a zip archive; it is truncated, or of "
               "another type; get it again from its source", content)
      for content in (b"", b"PK", b"\0" * 100, b"PK\5\6" + b"\0" * 17, npz()[:-1], npz() + b"\0", npy())],
    damaged("its directory has a wrong offset or length", archive(member("x.npy", npy()), length=1)),
    damaged("its directory has a wrong offset or length", b"MZ" + npz()),
    damaged("its directory has a wrong offset or length", archive(offset=1 << 31)),
    damaged("its directory has 51 bytes for 2 members", archive(member("x.npy", npy()), count=2)),
    damaged("its directory has more members than it says", archive(member("x.npy", npy()), count=0)),
    damaged("its directory is incomplete", archive(member("x.npy", npy()), large=dict(sign=b"PK\6\5"))),
    damaged("its directory is incomplete", archive(count=0xffff, offset=0)),
    damaged("its directory has a wrong offset", archive(member("x.npy", npy()), large=dict(locator=1))),
    damaged("its directory is incomplete", npz().replace(b"PK\1\2", b"PK\1\3")),
    damaged("its directory is incomplete", npz(extra=b"\0" * 8).replace(b"\5\0\10\0\0\0", b"\5\0\11\0\0\0")),
    damaged("a 64-bit size is incomplete", npz(packed=0xffffffff, nbytes=0xffffffff, extra=b"\1\0\10\0" + b"\0" * 8)),
    damaged("a 64-bit size is incomplete", npz(packed=0xffffffff, nbytes=0xffffffff, extra=b"\1\0\20\0" + b"\0" * 8)),
    damaged("the name of a member is not UTF-8", npz(name=b"\xff.npy", flags=0x800)),
    archived(": 'x.npy' is encrypted, which .npz files are not; unpack the archive and save the arrays with "
             "numpy.savez", npz(flags=1)),
    *[archived(f": 'x.npy' is compressed with method {n}; .npz files are stored or deflated: save the arrays with "
               "numpy.savez or numpy.savez_compressed", npz(method=n)) for n in (9, 12, 14)],
    damaged("'x.npy' promises 137 bytes from 136", npz(packed=136, nbytes=137)),
    damaged("'x.npy' promises 99,999,999 bytes from <*>", npz(method=8, nbytes=99_999_999)),
    damaged("'y.npy' overlaps another part of it", archive(member("x.npy", npy()), member("y.npy", npy(), at=0))),
    damaged("'x.npy' overlaps another part of it", npz(packed=137, nbytes=137)),
    damaged("'x.npy' overlaps another part of it", npz(at=1000)),
    damaged("'x.npy' has another header than in the directory", npz(local=(b"PK\3\5", 0))),
    damaged("'x.npy' has another header than in the directory", npz(local=(b"PK\3\4", 8))),
    damaged("'y.npy' has another header than in the directory",
            npz().replace(b"\0x.npyPK", b"\0y.npyPK")),
    damaged("'x' is in it twice", archive(member("x.npy", npy()), member("x", npy()))),
    damaged("'x.npy' cannot be decompressed: <*>", npz(method=8).replace(zipped(npy()), b"\xff" * len(zipped(npy())))),
    damaged("'x.npy' has fewer than the 140 bytes that it promises",
            npz(npy(F4.replace("2", "18"), b"\0" * 8), method=8, nbytes=140)),
    damaged("'x.npy' has more than the 75 bytes that it promises", npz(npy() + b"\0", method=8, nbytes=75)),
    damaged("'x.npy' is incomplete", npz(method=8, packed=len(zipped(npy())) - 1)),
    damaged("'x.npy' has bytes after its end", tail()),
    damaged("'x.npy' has a wrong checksum", npz(crc=1)),
    damaged("'x.npy' has a wrong checksum", npz(crc=1, method=8)),
    damaged("'x.npy' has fewer than the 11 bytes that it promises", npz(b"\x93NUMPY\2\0abc")),
    *[archived(": 'x' is not an .npy file; an .npz file has only arrays, as numpy.savez writes them", npz(content))
      for content in (b"", b"\x80\4N.", b"\x93NUMPX" + npy()[6:])],
    *[archived(f": 'x' has version {v}.{w} of the .npy format; cygrad reads 1.0, 2.0 and 3.0{AGAIN}",
               npz(npy(version=(v, w)))) for v, w in ((4, 0), (0, 0), (1, 1))],
    archived(f": 'x' has a header of 65,535 bytes; an array of numbers needs at most 10,000{AGAIN}",
             npz(npy(length=65535))),
    archived(f": 'x' has a header of 4,294,967,295 bytes; an array of numbers needs at most 10,000{AGAIN}",
             npz(npy(version=(2, 0), length=0xffffffff))),
    archived(f": 'x', float32 of shape (2,), takes 8 bytes, but has 7{AGAIN}", npz(npy(data=b"\0" * 7))),
    archived(f": 'x', float32 of shape (2,), takes 8 bytes, but has 9{AGAIN}", npz(npy(data=b"\0" * 9))),
    archived(f": the shape (4611686018427387904,) of 'x' (float32) has more elements than can exist{AGAIN}",
             npz(npy(F4.replace("2", str(2 ** 62))))),
    *[archived(": 'x' is an array of Python objects, which only a pickle can hold, and loading a pickle can run any "
               "code; save numbers", npz(npy(F4.replace("<f4", d)))) for d in ("|O", "O", "|O8")],
    *[archived(f": 'x' has the dtype '{d}'; cygrad loads float16, bool, float32, float64, int16, int32, int64, int8, "
               "uint16, uint32, uint64, uint8; convert it with NumPy", npz(npy(F4.replace("<f4", d))))
      for d in ("<c8", "<U3", "<M8[s]", "f16", "V4", "<f4,<f4", "")],
    archived(": 'x' is float16, which cygrad does not have; load it into float32 with dtype=cygrad.float32",
             npz(npy(F4.replace("<f4", "<f2"), b"\0" * 4))),
    header("the dtype of numbers in quotes (arrays of records are not loaded) must be at character 10, got \"[(<*>",
           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
    header("True or False must be at character <*>, got \"0, <*>", F4.replace("False", "0")),
    header("'(' must be at character <*>, got '[2]<*>", F4.replace("(2,)", "[2]")),
    header("a non-negative integer in shape must be at character <*>, got '-2<*>", F4.replace("2", "-2")),
    header("a non-negative integer in shape must be at character <*>, got 'os.system<*>", F4.replace("2", "os.system")),
    header("shape must have at most 16 integers, got more", F4.replace("2", "1," * 17)),
    header("an .npy file has descr, fortran_order and shape, got 'spam'", F4.replace("descr", "spam")),
    header("it must have descr, fortran_order and shape, got ['descr']", "{'descr': '<f4'}"),
    header("'descr' is in it twice", "{'descr': '<f4', 'descr': '<f4'}"),
    header("'{' must be at character 0, got '((((<*>", "(" * 9000),
    header("its end must be at character <*>, got '+ 1'", F4 + "+ 1"),
    header("it must be UTF-8, got another byte at 0", b"\xff"),
    archived(": 'x' is bool, so its bytes must be 0 or 1, got 7" + AGAIN,
             npz(npy(F4.replace("<f4", "|b1"), b"\7\0"))),
    archived(": the array '__metadata__' must be metadata, uint8 of one dimension and at most 100,000,000 bytes, got "
             "float32 of shape (2,); rename it with NumPy", npz(name="__metadata__.npy")),
    (reading(npz(npy(F4.replace("<f4", "|u1"), b"{1"), "__metadata__.npy"), ".npz", cg.io.metadata), ValueError,
     "metadata: <*>: __metadata__ has a malformed header: a name must be at character 1, got '1'" + AGAIN),
]
FILES = SAFETENSORS + ARCHIVES


def fifo():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.npz")
        os.mkfifo(path)
        cg.load(path)


def save_over_a_fifo():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.npz")
        os.mkfifo(path)
        cg.save(path, {})


def shrinking():
    """The file becomes shorter between the reads of its header and of its data."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.safetensors")
        cg.save(path, {"x": np.zeros(8)})
        read = os.preadv

        def preadv(fd, buffers, offset):
            if buffers[0].nbytes == 64: os.truncate(path, 100)
            return read(fd, buffers, offset)
        os.preadv = preadv
        try:
            cg.load(path)
        finally:
            os.preadv = read


def saving(tensors, name="x.npz", **keywords):
    def run():
        with tempfile.TemporaryDirectory() as directory:
            cg.save(os.path.join(directory, name), tensors() if callable(tensors) else tensors, **keywords)
    return run


CASES = FILES + [
    (lambda: cg.save("x.bin", {}), ValueError,
     "save: the path must end with .safetensors or .npz, which is the format, got 'x.bin'"),
    (lambda: cg.load("x"), ValueError,
     "load: the path must end with .safetensors or .npz, which is the format, got 'x'"),
    (lambda: cg.io.metadata(3), TypeError,
     "metadata: the path of a file is required, such as 'model.safetensors'; got 3"),
    (lambda: cg.load("/"), ValueError,
     "load: the path of a file is required, got the directory '/'; name a file in it, such as '/model.safetensors'"),
    (fifo, ValueError, "load: <*> is not a regular file; pass the path of one, not a pipe or device"),
    (save_over_a_fifo, ValueError, "save: <*> exists and is not a regular file; choose another path"),
    (shrinking, ValueError, "load: <*> became shorter while it was read; load it when nothing writes it"),
    (saving([]), TypeError, "save: tensors must be a dict of names and tensors, got []"),
    (saving({3: [1.0]}), TypeError, "save: the name of a tensor must be a str, got 3"),
    (saving({"__metadata__": [1.0]}), ValueError,
     "save: a tensor cannot have the name '__metadata__': __metadata__ is for metadata, and a name must be valid "
     "Unicode; rename it"),
    (saving({"\ud800": [1.0]}), ValueError, "save: a tensor cannot have the name '\\ud800': <*>"),
    (saving({"w": "text"}), TypeError, "save: 'w' is not a tensor that can be saved: a tensor holds numbers, <*>"),
    (saving({"w": np.zeros(2, np.float16)}), TypeError,
     "save: 'w' is not a tensor that can be saved: cygrad has no dtype float16; <*>"),
    (saving(lambda: {"w": cg.GradientSlice(cg.tensor([0]), cg.ones((1, 2)))}), TypeError,
     "save: 'w' is not a tensor that can be saved: a GradientSlice is not an array; use its to_dense(), <*>"),
    (saving(lambda: {"w": torch.ones(2, requires_grad=True)}), BufferError,
     "save: 'w' is not a tensor that can be saved: Can't export tensors that require gradient, use tensor.detach()"),
    (saving(lambda: {"w": freed()}), RuntimeError,
     "save: 'w' is not a tensor that can be saved: this tensor was freed, <*>"),
    (saving({"a\0": [1.0]}), ValueError,
     "save: a name in an .npz file has at most 65,531 bytes and no zero character, got 'a\\x00'; rename it, or save "
     ".safetensors"),
    (saving({"ä" * 32766: [1.0]}), ValueError, "save: a name in an .npz file has at most 65,531 bytes <*>"),
    (saving({"x" * 100_000_000: [1.0]}, "x.safetensors"), ValueError,
     "save: the names, shapes and metadata of a .safetensors file take at most 100,000,000 bytes, got 100,000,0<*>; "
     "save several files, or .npz"),
    (saving({}, metadata=[]), TypeError, "save: metadata must be a dict of strings, got []"),
    (saving({}, metadata={"step": 1}), TypeError,
     "save: metadata must be a dict of strings, got 1 for 'step'; convert it, with str() or json.dumps()"),
    (saving({}, metadata={"k": "\udc00"}), ValueError, "save: metadata must be valid Unicode, got '\\udc00' for 'k'"),
    (lambda: cg.load("x.npz", dtype="float16"), ValueError,
     "load: dtype must be float32 or float64, the dtype of floating-point tensors, got float16"),
    (lambda: cg.load("x.npz", dtype="spam"), TypeError, "'spam' is not a dtype; <*>"),
    (lambda: cg.load("x.npz", mmap=True), ValueError,
     "load: only .safetensors files can be mapped, got 'x.npz'; pass mmap=False"),
    (lambda: cg.load("x.npz", max_bytes="much"), ValueError, "load: max_bytes: a size must be a number <*>"),
    (reading(one(), max_bytes=7), ValueError,
     "load: <*> needs 8 bytes for its tensors, more than max_bytes, 7 bytes; raise max_bytes if that is right"),
    (reading(bomb(300), ".npz"), ValueError,
     "load: <*> needs 300 MiB (314,572,800 bytes) for its tensors, but has <*>: more than 100 times its size may be a "
     "trap; pass max_bytes=\"300MiB\" if it is right"),
    (lambda: Replacing.__new__(Replacing).__enter__(), RuntimeError,
     "this scope is already open, or was not made for a file; make another one"),
    (lambda: Replacing("x.npz", "save").__exit__(), RuntimeError, "this scope is not open, so it cannot be closed"),
    (lambda: bytes(Lease()), BufferError,
     "this Lease has no memory, because it was not made for a tensor; call numpy() of a tensor"),
]
