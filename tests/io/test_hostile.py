"""Malformed and hostile files: each is refused with ValueError before memory is taken, and nothing else happens. The
wordings are in tests/support/wordings/files.py."""

import os
import pickle
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from crafted import archive, equal, member, npy, npz, one, safetensors
from wordings.files import FILES, bomb

import cygrad as cg
from cygrad.testing import fail_allocation

IN_THE_DATA = "so its bytes must be 0 or 1", "'x.npy' has a wrong checksum"      # known after reading them
BESIDE = 400_000            # bytes of Python objects, for files of at most 100 kB


def peak(f):
    """The peak of f() in bytes, of tensors and Python objects together, and what it raised or returned."""
    tracemalloc.start()
    try:
        result = f()
    except Exception as e:
        result = e.with_traceback(None)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, result


@pytest.mark.parametrize("f, error, wording", FILES, ids=[wording[9:60] for _, _, wording in FILES])
def test_refused_before_memory_is_taken(f, error, wording):
    """An allocation would fail, so an error other than MemoryError shows that there was none."""
    with fail_allocation(1, persistent=True) as failure:
        nbytes, result = peak(f)
    if any(text in wording for text in IN_THE_DATA): return
    assert type(result) is error and failure.allocations == 0
    assert nbytes < BESIDE + 1_000_000 * ("'x.npy'" in wording)         # (a decompressor, and the piece it fills)


@pytest.mark.parametrize("mebibytes", [300, 100_000])
def test_a_bomb_is_refused_by_what_it_promises(tmp_path, mebibytes):
    path = tmp_path / "x.npz"
    if mebibytes == 300:
        path.write_bytes(bomb(300))
        wording = "more than 100 times its size may be a trap; pass max_bytes=\"300MiB\""
    else:                                           # a file without blocks that has what it promises
        with path.with_suffix(".safetensors").open("wb") as file:
            n = mebibytes << 20
            file.write(one("I8", (n,), (0, n), b""))
            file.truncate(file.tell() + n)
        path, wording = path.with_suffix(".safetensors"), "more than max_bytes, 1 MiB"
    with fail_allocation(1, persistent=True):
        nbytes, result = peak(lambda: cg.load(path, max_bytes=None if mebibytes == 300 else "1MiB"))
    assert isinstance(result, ValueError) and wording in str(result) and nbytes < BESIDE
    if mebibytes == 300:                            # it does not have what it promises, and max_bytes was raised
        with fail_allocation(1, persistent=True), pytest.raises(ValueError, match="has fewer than the 314,572,"):
            cg.load(path, max_bytes="1GiB")


def test_an_array_of_zeros_that_compresses_well_is_loaded(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1 << 22))        # 32 MiB in 32 KiB
    assert cg.load(tmp_path / "x.npz")["x"].shape == (1 << 22,)


class Payload:
    def __reduce__(self):
        return os.mkdir, ("/tmp/cygrad-was-run",)


def test_no_code_is_run(tmp_path):
    """Pickles in every place of a file, as arrays of objects, and as the whole file."""
    path = tmp_path / "x.npz"
    np.savez(path, x=np.array([Payload()], object))
    with pytest.raises(ValueError, match="an array of Python objects, which only a pickle can hold"): cg.load(path)
    data = pickle.dumps(Payload())
    for content in (data, npz(data), npz(npy(data=data)), npz(npy(data)), npz(npy("__import__('os').mkdir('x')"))):
        for name in ("x.npz", "x.safetensors"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(ValueError): cg.load(tmp_path / name)
            with pytest.raises(ValueError): cg.io.metadata(tmp_path / name)
    assert not os.path.exists("/tmp/cygrad-was-run")


def test_links(tmp_path):
    cg.save(tmp_path / "x.npz", {"x": [1.0]})
    (tmp_path / "link.npz").symlink_to("x.npz")
    assert cg.load(tmp_path / "link.npz")["x"].tolist() == [1]
    (tmp_path / "loop.npz").symlink_to("loop.npz")
    with pytest.raises(OSError, match="symbolic links"): cg.load(tmp_path / "loop.npz")
    with pytest.raises(OSError, match="symbolic links"): cg.save(tmp_path / "loop.npz", {})


def test_a_large_header_takes_memory_in_proportion(tmp_path):
    """Headers of 4 MB whose JSON would be many small objects."""
    path = tmp_path / "x.safetensors"
    for text in ("[" * 4_000_000, '{"x":[' + "[]," * 1_300_000 + "]}", '{"x":{"dtype":"F32","shape":['
                 + "0," * 2_000_000 + "0]}}", '{"__metadata__":{"a":[' + "1," * 2_000_000 + "1]}}",
                 '{"' + "a" * 4_000_000 + '":1}', '{"' + "\\n" * 2_000_000 + '":1}', "{" + " " * 4_000_000 + "x}",
                 '{"__metadata__":{' + '"":"",' * 600_000 + "}}"):
        path.write_bytes(safetensors(text))
        nbytes, result = peak(lambda: cg.load(path))
        assert isinstance(result, ValueError) and len(str(result)) < 1000
        assert nbytes < 20_000_000


SPARSE = """
import json, resource, sys
import cygrad as cg
path, each, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
header = json.dumps({f"w{i}": {"dtype": "F32", "shape": [each // 4], "data_offsets": [i * each, (i + 1) * each]}
                     for i in range(count)}).encode()
header += b" " * (-len(header) % 8)
with open(path, "wb") as file:
    file.write(len(header).to_bytes(8, "little") + header)
    file.truncate(8 + len(header) + each * count)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for keywords in {}, {"dtype": "float64"}, {"mmap": True}:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try: cg.load(path, **keywords)
    except MemoryError as e: print(e)
    now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert now - before < 20_000 and cg.memory.stats()["live_bytes"] == 0
    assert cg.memory.stats()["system_allocations"] == 0
"""


@pytest.mark.parametrize("each, count", [(1 << 40, 1), (1 << 29, 16)])
def test_holes_larger_than_memory(tmp_path, each, count):
    """A sparse file with an honest header is refused before a page is touched, also if each of its tensors fits."""
    path = tmp_path / "x.safetensors"
    run = subprocess.run([sys.executable, "-c", SPARSE, path, str(each), str(count)], capture_output=True, text=True)
    assert not run.stderr, run.stderr
    assert path.stat().st_blocks < 1000
    needs = "which the system cannot provide; the largest is 'w0', F32 of shape"
    for line, said in zip(run.stdout.splitlines(), (needs, needs, "no address space to map its"), strict=True):
        assert line.startswith(f"load: '{path}'") and said in line


def test_the_tensor_without_memory_is_named(tmp_path):
    path = tmp_path / "x.safetensors"
    cg.save(path, {"a": np.zeros(1000, "float32"), "b": np.zeros(9_000_000, "float32")})
    with pytest.raises(MemoryError, match=f"load: '{path}': no memory for 'b', float32 of shape .9000000,.: "):
        with cg.testing.fail_allocation(2): cg.load(path)
    with pytest.raises(cg.MemoryLimitError, match=f"load: '{path}': no memory for 'b', float32 of ") as caught:
        with cg.memory.limit("20MiB"): cg.load(path)
    assert caught.value.requested >= 36_000_000


def test_a_directory_without_members(tmp_path):
    """Each member has a header before the directory, so a directory alone is refused before it is read."""
    path = tmp_path / "x.npz"
    content = archive(member("x.npy", npy()))
    entry = content[content.index(b"PK\1\2"):-22]
    n = 1_000_000 // len(entry)
    body = content[:content.index(b"PK\1\2")]
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, n, n, n * len(entry), len(body), 0)
    path.write_bytes(body + entry * n + end)
    nbytes, result = peak(lambda: cg.load(path))
    assert isinstance(result, ValueError) and f"{n * len(entry):,} bytes for {n:,} members" in str(result)
    assert nbytes < BESIDE


# ---- mutated files ---------------------------------------------------------------------------------------------------

WORDS = b"-1", b"9" * 19, b"1e9", b"null", b"[", b"{", b"NaN", b"4294967295", b"True"


def mutated(r, data, alphabet):
    """`data` with a few changes: bytes replaced, removed, repeated; numbers made large; the end cut or extended."""
    data = bytearray(data)
    for _ in range(r.integers(1, 4)):
        i = int(r.integers(len(data) + 1))
        match r.integers(7):
            case 0: data[i:i + 1] = bytes([r.integers(256)])
            case 1: data[i:i + 1] = bytes([alphabet[r.integers(len(alphabet))]])
            case 2: del data[i:i + int(r.integers(1, 9))]
            case 3: data[i:i] = data[i:i + int(r.integers(1, 40))]
            case 4: data[i:i + 4] = b"\xff" * 4
            case 5: data[i:i + 1] = WORDS[r.integers(len(WORDS))]
            case 6: del data[i:]
    return bytes(data)


def safetensors_files(r):
    text = (b'{"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},'
            b'"h":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]},"b":{"dtype":"BOOL","shape":[4],'
            b'"data_offsets":[28,32]}}')
    while True:
        if r.integers(2): yield safetensors(mutated(r, text, b'{}[]",:0123456789'), bytes(32))
        else: yield mutated(r, safetensors(text, bytes(32)), b"\0\1\xff")


def npz_files(r):
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    def content(): return npy(mutated(r, text, b"{}()',:0123456789<>|"), bytes(24)) if r.integers(2) else npy()
    def method(): return 8 * int(r.integers(2))
    while True:
        match r.integers(4):
            case 0: yield npz(content(), method=method())
            case 1: yield npz(mutated(r, npy(), b"\0\1\2\3"), method=method())
            case 2: yield mutated(r, archive(member("x.npy", npy(), method=method()), member("y.npy", npy())), b"PK\1")
            case 3:
                changes = {key: int(r.integers(300)) for key in ("packed", "nbytes", "at", "crc") if not r.integers(3)}
                yield archive(member("x.npy", content(), method=method(), **changes), member("y.npy", content()),
                              large={} if r.integers(2) else None)


@pytest.mark.parametrize("files, suffix", [(safetensors_files, ".safetensors"), (npz_files, ".npz")])
@pytest.mark.parametrize("seed, count", [(1, 1500), pytest.param(2, 60_000, marks=pytest.mark.slow)])
def test_mutated_files(tmp_path, files, suffix, seed, count):
    """Each mutated file is loaded, or refused with an error that names it; neither takes more memory than a small
    multiple of its size."""
    path, refused = tmp_path / ("x" + suffix), 0
    source = files(np.random.default_rng(seed))
    path.touch()
    before = cg.memory.stats()
    for k in range(count):
        with path.open("r+b") as file:              # (to truncate a file to nothing takes milliseconds)
            file.truncate(file.write(next(source)))
        read = cg.io.metadata if k % 5 == 0 else cg.load
        keywords = {} if k % 5 == 0 else {"dtype": "float32", "mmap": suffix == ".safetensors" and k % 3 == 0}
        nbytes, result = peak(lambda: read(path, **keywords))
        if not isinstance(result, dict):
            assert type(result) is ValueError and str(path) in str(result), result
            refused += 1
        elif read is cg.load:
            assert sum(t.nbytes for t in result.values()) <= 2 * path.stat().st_size + 100
        assert nbytes < 500_000
        del result
        now = cg.memory.stats()
        assert (now["live_bytes"], now["external_bytes"]) == (before["live_bytes"], before["external_bytes"])
    assert count // 2 < refused < count


def test_what_is_loaded_is_what_numpy_reads(tmp_path):
    """A mutated archive that cygrad loads has the same names and elements for NumPy."""
    path, loaded, source = tmp_path / "x.npz", 0, npz_files(np.random.default_rng(3))
    path.touch()
    for _ in range(1500):
        with path.open("r+b") as file: file.truncate(file.write(next(source)))
        try:
            found = cg.load(path, dtype="float64")
        except ValueError:
            continue
        loaded += 1
        with path.open("rb") as raw:
            try: file = np.load(raw, allow_pickle=False)
            except NotImplementedError as e:
                assert "zip file version" in str(e)             # (which says nothing about the arrays)
                continue
            assert {name.removesuffix(".npy") for name in file.files} == found.keys()
            for name in file.files:
                assert equal(found[name.removesuffix(".npy")], as_float64(file[name]))
    assert loaded > 100


def as_float64(a):
    return a.astype("float64" if a.dtype.kind == "f" else a.dtype.newbyteorder("="))
