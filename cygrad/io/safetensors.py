"""The safetensors format (https://huggingface.co/docs/safetensors): 8 bytes with the length of the header, the header
in JSON, then the elements of the tensors in row-major order, little-endian and without gaps."""

import json

import numpy as np

from cygrad.core.errors import described
from cygrad.io.entries import Entry, size_of
from cygrad.io.files import AGAIN, pieces
from cygrad.io.text import decoded

LONGEST = 100_000_000       # bytes of a header, as in the safetensors package

CODES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
         "I64": "<i8", "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}
STORED = {code: np.dtype(text) for code, text in CODES.items()}
CODE_OF = {dtype: code for code, dtype in STORED.items() if code != "BF16"}


def check_names(names, who):
    """A name can be any text."""


def write(file, arrays, metadata, who):
    """Write a dict of arrays. The header has the order of the dict, the data has the largest items first: with the
    padding of the header every array is aligned."""
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    header, spans, end = ({"__metadata__": metadata} if metadata else {}), {}, 0
    for name, a in ordered: spans[name] = [end, end := end + a.nbytes]
    for name, a in arrays.items():
        header[name] = {"dtype": CODE_OF[a.dtype.newbyteorder("<")], "shape": list(a.shape),
                        "data_offsets": spans[name]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST:
        raise ValueError(f"{who}: the names, shapes and metadata of a .safetensors file take at most {LONGEST:,} "
                         f"bytes, got {len(text):,}; save several files, or .npz")
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for _, a in ordered:
        for piece in pieces(a): file.write(piece)


def read_header(file):
    """(metadata, tensors, offset of the data) of an Input; `tensors` has the header's dict for each name."""
    if file.size < 8:
        raise ValueError(f"{file} has {file.size} bytes; a .safetensors file begins with 8 bytes for the length of its "
                         f"header; {AGAIN}")
    n = int.from_bytes(file.read(0, 8), "little")
    if n > LONGEST:
        raise ValueError(f"{file} promises a header of {n:,} bytes, more than the {LONGEST:,} of the format; {AGAIN}")
    if n > file.size - 8:
        raise ValueError(f"{file} is truncated: it promises a header of {n:,} bytes, but {file.size - 8:,} follow; "
                         f"{AGAIN}")
    if n == 0 or file.read(8, 1) != b"{":
        raise ValueError(f"{file} is not a .safetensors file: its header must be a JSON object; {AGAIN}")
    text = decoded(file.read(8, n), file)

    def field(key):
        if key == "dtype": return text.string("the name of a dtype")
        if key in ("shape", "data_offsets"):
            text.need("[", "'['")
            return text.integers(key, "]")
        raise ValueError(f"{file} has a malformed header: a tensor has dtype, shape and data_offsets, got "
                         f"{described(key)}; {AGAIN}")

    def value(key):
        if key == "__metadata__": return text.strings()
        found = text.object(lambda: text.string("a name"), field)
        if len(found) < 3 or len(found["data_offsets"]) != 2:
            raise ValueError(f"{file} has a malformed header: {described(key)} must have dtype, shape and two "
                             f"data_offsets; {AGAIN}")
        return found

    tensors = text.object(lambda: text.string("a name"), value)
    text.end()
    return tensors.pop("__metadata__", {}), tensors, 8 + n


def read_entries(file):
    """The Entries of an Input, in the order of the header; each byte of the data belongs to exactly one."""
    _, tensors, data = read_header(file)
    entries = []
    for name, found in tensors.items():
        code, shape, (begin, end) = found["dtype"], found["shape"], found["data_offsets"]
        if code not in STORED:
            raise ValueError(f"{file}: {described(name)} has the dtype {described(code)}; cygrad loads "
                             f"{', '.join(CODES)}; convert it with the library that wrote it")
        nbytes = size_of(file, name, code, STORED[code].itemsize, shape)
        if end - begin != nbytes:
            raise ValueError(f"{file}: {described(name)}, {code} of shape {shape}, takes {nbytes:,} bytes, but its "
                             f"data_offsets are {begin:,} and {end:,}; {AGAIN}")
        entries.append(Entry(name, code, STORED[code], shape, nbytes, data + begin))
    end = data
    for e in sorted(entries, key=lambda e: (e.place, e.nbytes)):
        if e.place != end:
            raise ValueError(f"{file}: the data of {described(e.name)} begins at byte {e.place - data:,}, but what is "
                             f"before it ends at {end - data:,}; data must not overlap or have gaps; {AGAIN}")
        end += e.nbytes
    if end != file.size:
        raise ValueError(f"{file} has {file.size - data:,} bytes of data, but its header promises {end - data:,}; it "
                         f"is truncated, or something was appended; {AGAIN}")
    return entries


def read_metadata(file):
    """The metadata of an Input, a dict of strings."""
    return read_header(file)[0]


def verify(file, entries):
    """The header and the size of the file have shown that every byte is there."""


class EntryStream:
    """The bytes of an Entry in turn."""

    def __init__(self, file, entry):
        self.file, self.at = file, entry.place

    def readinto(self, memory):
        self.file.readinto(memory, self.at)
        self.at += memory.nbytes

    def close(self):
        pass


Stream = EntryStream    # saving.py calls that of each format so
