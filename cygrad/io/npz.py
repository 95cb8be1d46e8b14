"""The .npz format of NumPy: a zip archive with an .npy file for each array
(https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Arrays of objects, which are pickles, are
refused."""

import json
import re
from io import BytesIO

import numpy as np

from cygrad.core.errors import described
from cygrad.io.archive import DEFLATED, MemberStream, damaged, read_members
from cygrad.io.entries import NAMES, Entry, size_of
from cygrad.io.files import AGAIN, pieces
from cygrad.io.text import FLAG, QUOTED, decoded

METADATA = "__metadata__"   # the array that holds the metadata: the bytes of a JSON object of strings
LONGEST = 10_000            # bytes of an .npy header, as in NumPy
MAGIC = b"\x93NUMPY"
LONGEST_NAME = 65_535       # bytes of a name in a zip archive
LARGEST = 100_000_000       # bytes of metadata


def check_names(names, who):
    """Refuse names that a zip archive cannot hold."""
    for name in names:
        if "\0" in name or len(name.encode()) + 4 > LONGEST_NAME:
            raise ValueError(f"{who}: a name in an .npz file has at most {LONGEST_NAME - 4:,} bytes and no zero "
                             f"character, got {described(name)}; rename it, or save .safetensors")


def write(file, arrays, metadata, who):
    """Write a dict of arrays, uncompressed."""
    from zipfile import ZipFile                     # (its import takes 9 ms)

    archive = ZipFile.__new__(ZipFile)              # (an exception in its __init__ leaves an object that closes itself)
    try:
        archive.__init__(file, "w")
        if metadata:
            text = json.dumps(metadata, ensure_ascii=False).encode()
            write_member(archive, METADATA, np.frombuffer(text, np.uint8))
        for name, array in arrays.items(): write_member(archive, name, array)
        archive.close()
    except BaseException:
        archive.fp = None       # the file is discarded, and closing could raise another error, about an open member
        raise


def write_member(archive, name, array):
    """Write an array as an .npy file. Its date is the oldest of the format, so equal arrays give equal bytes."""
    from zipfile import ZipInfo

    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, {
        "descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape})
    member = ZipInfo(name + ".npy")
    member.file_size = header.tell() + array.nbytes             # (from which it gets 64-bit sizes)
    with archive.open(member, "w") as stream:
        stream.write(header.getvalue())
        for piece in pieces(array): stream.write(piece)


def read_all(file):
    """The Entries of an Input, with that of the metadata."""
    entries, seen = [], set()
    for member in read_members(file):
        name = member.name.removesuffix(".npy")
        if name in seen: damaged(file, f"{described(name)} is in it twice")
        seen.add(name)
        entries.append(entry := read_entry(file, member, name))
        if name == METADATA and (entry.stored != np.uint8 or len(entry.shape) != 1 or entry.nbytes > LARGEST):
            raise ValueError(f"{file}: the array {METADATA!r} must be metadata, uint8 of one dimension and at most "
                             f"{LARGEST:,} bytes, got {entry.kind} of shape {entry.shape}; rename it with NumPy")
    return entries


def read_entries(file):
    """The Entries of the tensors of an Input, in the order of the archive."""
    return [entry for entry in read_all(file) if entry.name != METADATA]


def verify(file, entries):
    """Unpack the compressed members once without keeping the result. Raises ValueError if one has another length or
    checksum than it promises."""
    for entry in entries:
        if entry.place[0].method == DEFLATED: MemberStream(file, entry.place[0]).close()


def read_entry(file, member, name):
    """The Entry of an .npy file: MAGIC, two bytes of version, the length of the header, a dict in Python's syntax with
    the dtype, the order and the shape, and the elements."""
    at = f"{file}: {described(name)}"
    stream = MemberStream(file, member)

    def take(n):
        if n > stream.unread: stream.short()
        found = bytearray(n)
        stream.readinto(memoryview(found))
        return found

    if member.nbytes < 10 or take(6) != MAGIC:
        raise ValueError(f"{at} is not an .npy file; an .npz file has only arrays, as numpy.savez writes them")
    major, minor = take(2)
    if major not in (1, 2, 3) or minor:
        raise ValueError(f"{at} has version {major}.{minor} of the .npy format; cygrad reads 1.0, 2.0 and 3.0; {AGAIN}")
    n = int.from_bytes(take(2 if major == 1 else 4), "little")
    if n > LONGEST:
        raise ValueError(f"{at} has a header of {n:,} bytes; an array of numbers needs at most {LONGEST:,}; {AGAIN}")
    descr, fortran, shape = read_header(take(n), at)
    stored = np.dtype(descr)
    nbytes = size_of(file, name, str(stored), stored.itemsize, shape)
    if nbytes != stream.unread:
        raise ValueError(f"{at}, {stored} of shape {shape}, takes {nbytes:,} bytes, but has {stream.unread:,}; {AGAIN}")
    return Entry(name, stored.name, stored, shape, nbytes, (member, member.nbytes - nbytes), fortran)


def read_header(data, at):
    """(descr, fortran_order, shape) of an .npy header."""
    text = decoded(data, at)

    def value(key):
        if key == "descr":
            descr = text.need(QUOTED, "the dtype of numbers in quotes (arrays of records are not loaded)")[1:-1]
            check_descr(descr, at)
            return descr
        if key == "fortran_order": return text.need(FLAG, "True or False") == "True"
        if key == "shape":
            text.need("(", "'('")
            return text.integers(key, ")")
        raise ValueError(f"{at} has a malformed header: an .npy file has descr, fortran_order and shape, got "
                         f"{described(key)}; {AGAIN}")

    found = text.object(lambda: text.need(QUOTED, "a name in quotes")[1:-1], value, trailing=True)
    text.end()
    if len(found) < 3:
        raise ValueError(f"{at} has a malformed header: it must have descr, fortran_order and shape, got "
                         f"{described(list(found))}; {AGAIN}")
    return found["descr"], found["fortran_order"], found["shape"]


def check_descr(descr, at):
    """Refuse dtypes that cygrad does not load, by name."""
    if re.fullmatch(r"[<>|=]O\d?|O", descr):
        raise ValueError(f"{at} is an array of Python objects, which only a pickle can hold, and loading a pickle can "
                         f"run any code; save numbers")
    if not re.fullmatch(r"[<>|=]?(b1|[iu][1248]|f[248])", descr):
        raise ValueError(f"{at} has the dtype {described(descr)}; cygrad loads float16, {', '.join(sorted(NAMES))}; "
                         f"convert it with NumPy")


def read_metadata(file):
    """The metadata of an Input, a dict of strings."""
    for entry in read_all(file):
        if entry.name == METADATA: break
    else:
        return {}
    stream, data = NpzStream(file, entry), bytearray(entry.nbytes)
    stream.readinto(memoryview(data))
    stream.close()
    text = decoded(data, f"{file}: {METADATA}")
    found = text.strings()
    text.end()
    return found


class NpzStream(MemberStream):
    """The bytes of an Entry in turn."""

    def __init__(self, file, entry):
        member, skip = entry.place
        super().__init__(file, member)
        self.readinto(memoryview(bytearray(skip)))


Stream = NpzStream        # saving.py calls that of each format so
