"""Files for tests: .safetensors and .npz byte by byte, right and wrong."""

import json
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np


def safetensors(header, data=b""):
    """The bytes of a .safetensors file. The header is a dict, text, or bytes."""
    if isinstance(header, dict): header = json.dumps(header)
    if isinstance(header, str): header = header.encode()
    return len(header).to_bytes(8, "little") + header + data


def one(dtype="F32", shape=(2,), offsets=(0, 8), data=b"\0" * 8, name="x"):
    """A .safetensors file of one tensor."""
    return safetensors({name: {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}, data)


def npy(header="{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", data=b"\0" * 8, version=(1, 0),
        length=None):
    """The bytes of an .npy file."""
    text = header.encode() if isinstance(header, str) else header
    n = len(text) if length is None else length
    return b"\x93NUMPY" + bytes(version) + n.to_bytes(2 if version[0] == 1 else 4, "little") + text + data


def member(name, content, *, method=0, flags=0, packed=None, nbytes=None, crc=None, local=None, at=None, extra=b""):
    """A member of `archive`. What is given is written in its place, right or wrong; `local` is (signature, method)."""
    if isinstance(name, str): name = name.encode()
    data = content
    if method == 8:
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = deflate.compress(content) + deflate.flush()
    return dict(name=name, data=data, method=method, flags=flags, at=at, extra=extra,
                packed=len(data) if packed is None else packed, nbytes=len(content) if nbytes is None else nbytes,
                crc=zlib.crc32(content) if crc is None else crc, local=local or (b"PK\3\4", method))


def archive(*members, count=None, length=None, offset=None, comment=b"", large=None):
    """The bytes of a zip archive, with a 64-bit end if `large` is a dict: of its signature, and what is added to the
    offset in its locator."""
    body, directory = b"", b""
    for m in members:
        at = len(body) if m["at"] is None else m["at"]
        sign, method = m["local"]
        body += struct.pack("<4sHHHHHIIIHH", sign, 20, m["flags"], method, 0, 33, m["crc"], m["packed"] & 0xffffffff,
                            m["nbytes"] & 0xffffffff, len(m["name"]), 0) + m["name"] + m["data"]
        directory += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, m["flags"], m["method"], 0, 33, m["crc"],
                                 m["packed"], m["nbytes"], len(m["name"]), len(m["extra"]), 0, 0, 0, 0, at
                                 ) + m["name"] + m["extra"]
    n = len(members) if count is None else count
    size = len(directory) if length is None else length
    begin = len(body) if offset is None else offset
    end = b""
    if large is not None:
        locator = len(body) + len(directory) + large.get("locator", 0)
        end = struct.pack("<4sQHHIIQQQQ", large.get("sign", b"PK\6\6"), 44, 45, 45, 0, 0, n, n, size, begin)
        end += struct.pack("<4sIQI", b"PK\6\7", 0, locator, 1)
        n, size, begin = 0xffff, 0xffffffff, 0xffffffff
    end += struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, n, n, size, begin, len(comment)) + comment
    return body + directory + end


def npz(content=None, name="x.npy", **changes):
    """An .npz file of one member."""
    return archive(member(name, npy() if content is None else content, **changes))


def written(content, suffix=".safetensors"):
    """The path of a file with these bytes, in a directory of its own."""
    path = Path(tempfile.mkdtemp(), "x" + suffix)
    path.write_bytes(content)
    return path


def remove(path):
    for p in path.parent.iterdir(): p.unlink()
    path.parent.rmdir()


def reading(content, suffix=".safetensors", read=None, **keywords):
    """A function that loads a file with these bytes (`read` instead of load)."""
    def run():
        import cygrad as cg
        path = written(content() if callable(content) else content, suffix)
        try:
            return (read or cg.load)(path, **keywords)
        finally:
            remove(path)
    return run


def equal(tensor, array):
    """Whether a tensor has the dtype, shape and bits of an array."""
    found = tensor.detach().numpy()
    array = np.asarray(array)
    return found.dtype == array.dtype and found.shape == array.shape and found.tobytes() == array.tobytes()
