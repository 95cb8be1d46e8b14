"""cg.save, cg.load and io.metadata: what is saved comes back, bit for bit, and memory is counted."""

import io
import json
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from crafted import archive, equal, member, npy, npz, one, safetensors

import cygrad as cg
from cygrad.core.handles import Input
from cygrad.io import metadata, npz as npz_format
from cygrad.io.archive import END, END64, ENTRY, LOCAL, LOCATOR, read_members
from cygrad.io.entries import STEP
from cygrad.io.files import PIECE
from cygrad.testing import fail_allocation

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
SUFFIXES = ".safetensors", ".npz"


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / ("x" + request.param)


def arrays(dtype, shapes=((3, 5), (), (0,), (4, 0, 2), (1,), (7,), (2, 1, 3))):
    """Arrays of random bits: of floating dtypes some are NaN with a payload, infinite or denormal."""
    r = np.random.default_rng(7)
    found = {}
    for i, shape in enumerate(shapes):
        raw = r.integers(0, 2 if dtype == "bool" else 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
        found[f"{dtype}.{i}"] = np.ascontiguousarray(raw).view(dtype).reshape(shape)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_comes_back(path, dtype):
    tensors = arrays(dtype)
    cg.save(path, {name: cg.tensor(a) for name, a in tensors.items()})
    for found in (cg.load(path), *([cg.load(path, mmap=True)] if path.suffix == ".safetensors" else [])):
        assert list(found) == list(tensors)
        assert all(equal(found[name], a) for name, a in tensors.items())


@pytest.mark.parametrize("dtype, bits", [("float32", "u4"), ("float64", "u8")])
def test_payloads_of_nan_come_back(path, dtype, bits):
    size = int(bits[1]) * 8
    edges = np.array([0x7f800001, 0x7fc00000, 0xffc12345, 0x7fbfffff, 0xff800001, 0x80000000, 1, 0x807fffff], "u8")
    a = (edges << np.uint64(size - 32) | edges * np.uint64(size == 64)).astype(bits).view(dtype)
    cg.save(path, {"a": a, "strided": a[::-2], "turned": np.stack([a, a]).T})
    found = cg.load(path)
    assert equal(found["a"], a) and equal(found["strided"], a[::-2]) and equal(found["turned"], np.stack([a, a]).T)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
def test_views_are_written_in_row_major_order(path, dtype):
    a = arrays(dtype, [(6, 5, 4)])[f"{dtype}.0"]
    t = cg.tensor(a)
    views = {"T": (t.T, a.T), "steps": (t[::2, ::-1, 1:3], a[::2, ::-1, 1:3]), "row": (t[3], a[3]),
             "wide": (cg.broadcast_to(t[:, :, :1], (6, 5, 9)), np.broadcast_to(a[:, :, :1], (6, 5, 9))),
             "permuted": (t.permute(1, 2, 0), a.transpose(1, 2, 0)), "none": (t[:, :0], a[:, :0]),
             "element": (t[1, 2, 3], a[1, 2, 3])}
    cg.save(path, {name: view for name, (view, _) in views.items()})
    found = cg.load(path)
    assert all(equal(found[name], array) for name, (_, array) in views.items())


def test_views_longer_than_a_piece(path):
    a = np.arange(3 * PIECE // 8 + 5, dtype=np.float64)
    grid = np.arange(1100 * 1103, dtype=np.int16).reshape(1100, 1103)
    cg.save(path, {"back": a[::-1], "T": grid.T, "third": grid[::3, ::2], "flags": (grid.T > 5)})
    found = cg.load(path)
    assert equal(found["back"], a[::-1]) and equal(found["T"], grid.T) and equal(found["third"], grid[::3, ::2])
    assert equal(found["flags"], grid.T > 5)


def test_what_asarray_takes_is_a_tensor(path):
    cg.save(path, {"list": [1.0, 2.0], "number": 3, "big": np.arange(3, dtype=">i4"), "range": cg.arange(2)})
    found = cg.load(path)
    assert found["list"].tolist() == [1, 2] and found["list"].dtype == "float32"
    assert found["number"].tolist() == 3 and found["big"].tolist() == [0, 1, 2] and found["big"].dtype == "int32"
    cg.save(path, {})
    assert cg.load(path) == {}


def test_bools_are_written_as_0_and_1(path):
    cg.save(path, {"b": np.array([0, 1, 2, 255], np.uint8).view(bool), "0d": np.array(7, np.uint8).view(bool)})
    assert cg.load(path)["b"].numpy().view(np.uint8).tolist() == [0, 1, 1, 1]
    assert cg.load(path)["0d"].numpy().view(np.uint8).tolist() == 1


def test_names_of_every_kind(path):
    names = ["", ".", "a/b", "../../x", "x.npy", "x", "ö ß 漢 🙂", '"\\', "line\nbreak", " ", "fc.0.weight", "\x7f\x01"]
    cg.save(path, {name: [i] for i, name in enumerate(names)})
    assert list(cg.load(path)) == names
    assert [t.tolist() for t in cg.load(path).values()] == [[i] for i in range(len(names))]


def test_variables_and_results_are_saved_as_data_and_loaded_plain(path):
    w = cg.tensor([1.0, 2.0], requires_grad=True)
    with cg.record():
        y = w * w
        cg.save(path, {"w": w, "y": y, "grad": cg.zeros(2)})
        found = cg.load(path)
    assert not any(t.requires_grad or t.grad is not None or not t.is_leaf for t in found.values())
    assert found["y"].tolist() == [1, 4]
    y.backward()
    assert w.grad.tolist() == [2, 4]
    found["w"] += 1
    assert found["w"].tolist() == [2, 3] and w.tolist() == [1, 2]


def test_metadata(path):
    strings = {"epoch": "3", "": "empty name", "ключ": "🙂 \"quoted\"\n\\", "config": json.dumps({"a": [1]})}
    cg.save(path, {"x": [1.0]}, strings)
    assert metadata(path) == cg.io.metadata(str(path)) == strings and list(metadata(path)) == list(strings)
    assert list(cg.load(path)) == ["x"]
    cg.save(path, {"x": [1.0]})
    assert metadata(path) == {}
    cg.save(path, {"x": [1.0]}, metadata={})
    assert metadata(path) == {} and b"__metadata__" not in path.read_bytes()


def test_equal_dicts_give_equal_bytes(path):
    tensors = {"b": cg.ones(3), "a": cg.tensor([True])}
    cg.save(path, tensors, {"k": "v"})
    before = path.read_bytes()
    path.unlink()
    cg.save(path, tensors, {"k": "v"})
    assert path.read_bytes() == before


def test_the_bytes_of_a_safetensors_file(tmp_path):
    """The largest items come first, and the header ends at a multiple of 8, so that every array is aligned."""
    header = (b'{"__metadata__":{"k":"v"},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[12,15]},'
              b'"f":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},"i":{"dtype":"I64","shape":[],'
              b'"data_offsets":[0,8]}}')
    header += b" " * (-len(header) % 8)
    cg.save(tmp_path / "x.safetensors", {"b": [True, False, True], "f": [[1.0]], "i": cg.tensor(-2)}, {"k": "v"})
    assert (tmp_path / "x.safetensors").read_bytes() == (
        len(header).to_bytes(8, "little") + header + b"\xfe" + b"\xff" * 7 + b"\0\0\x80\x3f" + b"\1\0\1")


def test_the_bytes_of_an_npz_file(tmp_path):
    cg.save(tmp_path / "x.npz", {"f": [1.0, 2.0]})
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\1\0\x76\0" + text + b"\0\0\x80\x3f\0\0\0\x40"
    assert content in (tmp_path / "x.npz").read_bytes()


@pytest.mark.parametrize("wanted", ["float32", "float64"])
def test_half_precision_is_loaded_into_another_dtype_exactly(tmp_path, wanted):
    """All 65,536 values of float16 and of bfloat16."""
    bits = np.arange(65536, dtype=np.uint16)
    half, bfloat = bits.view(np.float16).astype(wanted), (bits.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"): wide = bfloat.astype(wanted)
    data = bits.tobytes()
    a, b, c = (tmp_path / name for name in ("a.safetensors", "b.safetensors", "c.npz"))
    a.write_bytes(one("F16", (65536,), (0, 131072), data))
    b.write_bytes(one("BF16", (256, 256), (0, 131072), data))
    np.savez(c, x=bits.view(np.float16), n=bits, f=np.asfortranarray(bits.view(np.float16).reshape(4, -1)))
    for mmap in (False, True):
        assert np.array_equal(cg.load(a, dtype=wanted, mmap=mmap)["x"].numpy(), half, equal_nan=True)
        found = cg.load(b, dtype=wanted, mmap=mmap)["x"]
        assert np.array_equal(found.numpy(), wide.reshape(256, 256), equal_nan=True)
        assert found.dtype == wanted
    assert np.array_equal(np.signbit(found.numpy()).ravel(), bits >> 15)
    found = cg.load(c, dtype=wanted)
    assert found["x"].dtype == wanted and found["n"].dtype == "uint16" and equal(found["n"], bits)
    assert np.array_equal(found["x"].numpy(), half, equal_nan=True)
    assert np.array_equal(found["f"].numpy(), half.reshape(4, -1), equal_nan=True)


def test_dtype_converts_floating_point_tensors_only(path):
    tensors = {"d": np.array([0.1, 1e300]), "s": np.array([0.1], np.float32), "i": np.array([2 ** 60]),
               "b": np.array([True])}
    cg.save(path, tensors)
    found = cg.load(path, dtype=cg.float32)
    assert [str(t.dtype) for t in found.values()] == ["float32", "float32", "int64", "bool"]
    assert found["d"].tolist() == [np.float32(0.1), np.inf] and found["i"].tolist() == [2 ** 60]
    found = cg.load(path, dtype=float)
    assert [str(t.dtype) for t in found.values()] == ["float64", "float64", "int64", "bool"]


def test_mapped_tensors_share_the_file_and_refuse_writes(tmp_path):
    path = tmp_path / "x.safetensors"
    cg.save(path, {"w": cg.arange(1000, dtype=cg.float64), "b": [True, False], "z": np.zeros((0, 2))})
    before = cg.memory.stats()
    found = cg.load(path, mmap=True)
    now = cg.memory.stats()
    assert now["live_bytes"] == before["live_bytes"]
    assert now["external_bytes"] - before["external_bytes"] == 8002
    with pytest.raises(ValueError, match="read-only"): found["w"].fill_(0)
    with pytest.raises(ValueError, match="read-only"): found["w"].numpy().fill(0)
    with pytest.raises(ValueError, match="read-only"): found["b"].copy_(True)
    with path.open("r+b") as file:
        file.seek(-8002, 2)
        file.write(np.float64(5).tobytes())
    assert found["w"][0].item() == 5                # the memory is the file's
    cg.save(path, {"w": [7.0]})                     # which save replaces and does not write into
    assert found["w"][0].item() == 5 and found["w"][999].item() == 999
    w = found["w"]
    del found
    assert cg.memory.stats()["external_bytes"] - before["external_bytes"] == 8000
    w.requires_grad_()
    with cg.record(): (w * 2).backward()
    assert w.grad.tolist() == [2] * 1000
    del w
    assert cg.memory.stats()["external_bytes"] == before["external_bytes"]


def test_mapping_copies_what_is_not_aligned(tmp_path):
    path = tmp_path / "x.safetensors"
    header = {"x": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
              "b": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    path.write_bytes(safetensors(json.dumps(header).ljust(144), b"\7" + np.array([1, 2], "<f4").tobytes()))
    before = cg.memory.stats()
    found = cg.load(path, mmap=True)
    now = cg.memory.stats()
    assert found["x"].tolist() == [1, 2] and found["b"].tolist() == [7]
    assert found["x"].numpy().flags.writeable and not found["b"].numpy().flags.writeable
    assert now["live_bytes"] - before["live_bytes"] == 8 and now["external_bytes"] - before["external_bytes"] == 1


def test_arrays_of_other_orders_and_versions(tmp_path):
    """Column-major and big-endian arrays, compressed ones, and versions 2 and 3 of .npy."""
    path = tmp_path / "x.npz"
    a = np.arange(600_000, dtype=np.int32).reshape(300, 20, 100)
    tensors = {"f": np.asfortranarray(a), "big": a.astype(">i4"), "both": np.asfortranarray(a.astype(">i4")),
               "d": np.array(2.5), "none": np.zeros((3, 0), order="F"), "flags": np.asfortranarray(a % 3 == 0)}
    for write in (np.savez, np.savez_compressed):
        write(path, **tensors)
        found = cg.load(path)
        assert list(found) == list(tensors)
        assert all(equal(found[name], x.astype(x.dtype.newbyteorder("="))) for name, x in tensors.items())
    sizes = struct.pack("<HHIHHQQ", 0x7777, 4, 0, 1, 16, len(npy()), len(npy()))        # after a field of another kind
    path.write_bytes(npz(packed=0xffffffff, nbytes=0xffffffff, extra=sizes))
    assert cg.load(path)["x"].tolist() == [0, 0]
    path.write_bytes(npz(npy("{'shape': (), 'descr': \"<i2\", 'fortran_order': True}", b"\7\0")))
    assert cg.load(path)["x"].tolist() == 7
    members = [member(f"{v}.npy", npy(version=(v, 0)), method=8 * (v == 3)) for v in (1, 2, 3)]
    path.write_bytes(archive(*members, comment=b"PK\5\6 a comment", large={}))
    assert [t.tolist() for t in cg.load(path).values()] == [[0, 0]] * 3


class Pipe(io.RawIOBase):
    """A file that cannot seek. Sizes are then behind the data."""

    def __init__(self): self.data = bytearray()
    def writable(self): return True

    def write(self, data):
        self.data += data
        return len(data)


def test_an_archive_that_was_written_into_a_pipe(tmp_path):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        pipe = Pipe()
        with zipfile.ZipFile(pipe, "w", method) as file:
            for name in "ab":
                with file.open(name + ".npy", "w", force_zip64=name == "a") as f:
                    np.lib.format.write_array(f, np.arange(5.0))
        (tmp_path / "x.npz").write_bytes(pipe.data)
        assert [t.tolist() for t in cg.load(tmp_path / "x.npz").values()] == [[0, 1, 2, 3, 4]] * 2


def test_members_of_more_than_4_GiB(tmp_path):
    """Sizes and offsets of 64 bits, in a file with holes: zipfile and the reader agree."""
    path, n, directory = tmp_path / "x.npz", (5 << 30) + 1, b""
    with path.open("wb") as file:
        for name, nbytes in ((b"a", 7), (b"b", n), (b"c", 0xffffffff), (b"d", 0xfffffffe), (b"e", 7)):
            large = [k for k in (nbytes, nbytes, file.tell()) if k >= 0xffffffff]
            extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
            sizes = [min(k, 0xffffffff) for k in (nbytes, nbytes, file.tell())]
            directory += ENTRY.pack(b"PK\1\2", 45, 45, 0, 0, 0, 33, 0, *sizes[:2], 1, len(extra), 0, 0, 0, 0, sizes[2]
                                    ) + name + extra
            file.write(LOCAL.pack(b"PK\3\4", 45, 0, 0, 0, 33, 0, *sizes[:2], 1, 0) + name)
            file.seek(nbytes, 1)
        end = file.tell()
        file.write(directory + END64.pack(b"PK\6\6", END64.size - 12, 45, 45, 0, 0, 5, 5, len(directory), end))
        file.write(LOCATOR.pack(b"PK\6\7", 0, end + len(directory), 1))
        file.write(END.pack(b"PK\5\6", 0, 0, 5, 5, len(directory), 0xffffffff, 0))
    with Input(str(path), "load") as file: members = read_members(file)
    with zipfile.ZipFile(path) as file:
        assert [(m.name, m.nbytes, m.packed, m.offset) for m in members] == [
            (i.filename, i.file_size, i.compress_size, i.header_offset) for i in file.infolist()]
    assert [m.nbytes for m in members] == [7, n, 0xffffffff, 0xfffffffe, 7] and members[4].offset > 13 << 30


class Holes:
    """A file for writing in which long runs of zeros become holes."""

    def __init__(self, file):
        self.file, self.tell, self.seek, self.flush = file, file.tell, file.seek, file.flush

    def write(self, data):
        if len(data) == PIECE and not any(memoryview(data)[::4096]): self.seek(PIECE, 1)
        else: self.file.write(data)
        return len(data)


@pytest.mark.parametrize("n", [pytest.param(k, marks=pytest.mark.slow) for k in (2**31 - 1000, 2**32 + 5)])
def test_an_array_of_gigabytes_in_an_archive(tmp_path, n):
    path = tmp_path / "x.npz"
    with path.open("wb") as file:
        npz_format.write(Holes(file), {"a": np.broadcast_to(np.zeros((), "u1"), n), "b": np.arange(3)}, {}, "save")
    assert path.stat().st_blocks < 100_000
    with Input(str(path), "load") as file:
        a, b = npz_format.read_entries(file)
        assert (a.shape, b.shape) == ((n,), (3,))
        stream, found = npz_format.Stream(file, b), np.empty(3, b.stored)
        stream.readinto(found.view("u1").data)
        stream.close()
        assert found.tolist() == [0, 1, 2]
    with zipfile.ZipFile(path) as file: assert file.infolist()[0].file_size == n + 128


@pytest.mark.parametrize("n", [2000, pytest.param(70_000, marks=pytest.mark.slow)])
def test_many_tensors(path, n):
    """70,000 are more than the 16-bit count of a zip archive holds."""
    cg.save(path, dict.fromkeys(map(str, range(n)), np.zeros(0)))
    assert list(cg.load(path)) == list(map(str, range(n)))


def test_loading_counts_exactly_the_bytes_of_the_tensors(path):
    cg.save(path, {"a": np.zeros((300, 1000), np.float32), "b": np.zeros(7, np.int8), "h": np.ones((1 << 20, 2)).T})
    before = cg.memory.stats()["live_bytes"]
    cg.load(path)                                   # (its modules)
    for keywords, nbytes, work in (({}, 1_200_007 + (16 << 20), 0),
                                   ({"dtype": "float32"}, 1_200_007 + (8 << 20), STEP * (8 + 4))):
        with cg.memory.track() as t:
            tracemalloc.start()
            found = cg.load(path, **keywords)
            beside = tracemalloc.get_traced_memory()[1] - nbytes       # (which has the memory of tensors too)
            tracemalloc.stop()
        assert cg.memory.stats()["live_bytes"] - before == nbytes and t.peak_bytes - before == nbytes + work
        assert beside < work + 200_000              # (all that is large is counted)
        del found
    assert cg.memory.stats()["live_bytes"] == before


def test_saving_takes_one_piece_beside_the_tensors(path):
    t = cg.zeros((2000, 2000))
    live = cg.memory.stats()["live_bytes"]
    cg.save(path, {"t": t})
    for view in (t, t.T, t[::2]):
        with cg.memory.track() as tracked:
            tracemalloc.start()
            cg.save(path, {"t": view})
            beside = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert tracked.peak_bytes == live and beside < PIECE + 200_000


def test_a_limit_or_a_failing_allocation_leaves_nothing(path):
    cg.save(path, {str(i): np.full(1 << 16, float(i)) for i in range(4)})
    before = cg.memory.stats()
    cg.memory.empty_cache()
    with cg.memory.limit(3 << 19), pytest.raises(cg.MemoryLimitError, match=r"at .*test_saving\.py:\d+ requested 524"):
        cg.load(path)
    assert cg.memory.stats()["live_bytes"] == before["live_bytes"]
    n, failed = 1, 0
    while True:
        try:
            with fail_allocation(n) as failure: found = cg.load(path)
        except MemoryError:
            failed += 1
        if not failure.failed: break
        assert cg.memory.stats()["live_bytes"] == before["live_bytes"]
        n += 1
    assert failed == 4 and found["3"][0].item() == 3


def test_max_bytes(path):
    cg.save(path, {"a": np.zeros(100), "n": np.zeros(5, np.int8)})
    assert len(cg.load(path, max_bytes=805)) == len(cg.load(path, max_bytes="405 B", dtype="float32")) == 2
    with pytest.raises(ValueError, match="needs 805 bytes for its tensors, more than max_bytes, 804 bytes"):
        cg.load(path, max_bytes=804)
    if path.suffix == ".safetensors": assert len(cg.load(path, max_bytes=0, mmap=True)) == 2


def test_what_the_system_raises_arrives_as_itself(path, tmp_path):
    for read in (cg.load, metadata):
        with pytest.raises(FileNotFoundError): read(path)
    with pytest.raises(FileNotFoundError) as caught: cg.save(tmp_path / "none" / path.name, {})
    assert caught.value.filename == str(tmp_path / "none" / path.name)
    with pytest.raises(ValueError, match="embedded null "): cg.load("a\0" + path.suffix)


def test_files_are_loaded_at_first_use():
    program = ("import sys, cygrad as cg; assert 'cygrad.io' not in sys.modules and 'zipfile' not in sys.modules; "
               "assert {'io', 'load', 'save'} <= {*dir(cg)}; cg.save; assert cg.io.save is cg.save is not cg.load")
    subprocess.run([sys.executable, "-c", program], check=True)
