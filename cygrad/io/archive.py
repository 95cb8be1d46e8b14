"""Reads zip archives as NumPy writes them. Format: APPNOTE.TXT of PKWARE.

Python's zipfile writes them, but reads too much: of the 41 archives in tests/support/wordings/files.py that are damaged
as archives, it reads 15 without an error (Python 3.11.7), such as one with bytes after the end of a member and one
whose local header states another method. For a directory of 100 MB without members it takes 830 MB and 11 seconds;
this module refuses that before it reads the directory."""

import struct
import zlib
from typing import NamedTuple

from cygrad.core.errors import described
from cygrad.io.files import AGAIN, PIECE

LONGEST = 100_000_000       # bytes of the directory
RATIO = 1032                # how much deflate expands at most

LOCAL = struct.Struct("<4sHHHHHIIIHH")
ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
END = struct.Struct("<4sHHHHIIH")
LOCATOR = struct.Struct("<4sIQI")
END64 = struct.Struct("<4sQHHIIQQQQ")
STORED, DEFLATED = 0, 8     # methods
UTF8 = 0x800                # a flag
FULL, MANY = 0xffffffff, 0xffff     # a number of this size or larger is in a 64-bit field


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    method: int
    crc: int
    packed: int             # bytes in the archive
    nbytes: int             # and unpacked
    offset: int             # where its local header is
    raw: bytes              # its name in the directory
    begin: int = 0          # where its bytes begin


def read_directory(file):
    """(offset, length, number of members) of the directory of an Input."""
    n = min(file.size, END.size + MANY)
    tail = bytes(file.read(file.size - n, n))
    i = tail.rfind(b"PK\5\6")
    while i >= 0 and (len(tail) - i < END.size or END.unpack_from(tail, i)[-1] != len(tail) - i - END.size):
        i = tail.rfind(b"PK\5\6", 0, i)             # (a comment may contain the same four bytes)
    if i < 0:
        raise ValueError(f"{file} is not an .npz file: it does not end with the directory of a zip archive; it is "
                         f"truncated, or of another type; get it again from its source")
    _, _, _, _, count, length, offset, _ = END.unpack_from(tail, i)
    end = file.size - n + i
    if count == MANY or length == FULL or offset == FULL:
        if end < LOCATOR.size + END64.size: damaged(file, "its directory is incomplete")
        sign, _, end64, _ = LOCATOR.unpack(file.read(end - LOCATOR.size, LOCATOR.size))
        if sign == b"PK\6\7":
            if end64 != end - LOCATOR.size - END64.size: damaged(file, "its directory has a wrong offset")
            end = end64
            sign, _, _, _, _, _, _, count, length, offset = END64.unpack(file.read(end, END64.size))
            if sign != b"PK\6\6": damaged(file, "its directory is incomplete")
    if offset + length != end: damaged(file, "its directory has a wrong offset or length")
    if length > LONGEST or count * ENTRY.size > length or count * LOCAL.size > offset:
        damaged(file, f"its directory has {length:,} bytes for {count:,} members")
    return offset, length, count


def damaged(file, fault):
    raise ValueError(f"{file} is a damaged .npz file: {fault}; {AGAIN}")


def read_members(file):
    """The Members of an Input, in the order of the directory. None overlaps another or the directory."""
    offset, length, count = read_directory(file)
    directory = memoryview(file.read(offset, length))
    members, i = [], 0
    for _ in range(count):
        if i + ENTRY.size > length: damaged(file, "its directory is incomplete")
        (sign, _, _, flags, method, _, _, crc, packed, nbytes, n_name, n_extra, n_comment, _, _, _, at
         ) = ENTRY.unpack_from(directory, i)
        i += ENTRY.size
        name, extra = bytes(directory[i:i + n_name]), directory[i + n_name:i + n_name + n_extra]
        i += n_name + n_extra + n_comment
        if sign != b"PK\1\2" or i > length: damaged(file, "its directory is incomplete")
        try:
            text = name.decode("utf-8" if flags & UTF8 else "cp437")
        except UnicodeDecodeError:
            damaged(file, "the name of a member is not UTF-8")
        nbytes, packed, at = large_sizes(file, extra, [nbytes, packed, at])
        m = Member(text, method, crc, packed, nbytes, at, name)
        check(file, m, flags)
        members.append(m)
    if i != length: damaged(file, "its directory has more members than it says")
    return located(file, members, offset)


def large_sizes(file, extra, values):
    """32-bit values of a directory entry, with those of 2^32 - 1 from the 64-bit field of `extra`."""
    i = 0
    while FULL in values:
        if i + 4 > len(extra): break                # (really 2^32 - 1)
        kind, n = struct.unpack_from("<HH", extra, i)
        i += 4
        if kind == 1:
            large = [k for k, v in enumerate(values) if v == FULL]
            if n < 8 * len(large) or i + n > len(extra): damaged(file, "a 64-bit size is incomplete")
            for j, k in enumerate(large): values[k], = struct.unpack_from("<Q", extra, i + 8 * j)
            break
        i += n
    return values


def check(file, m, flags):
    """Refuse a member that NumPy would not write."""
    if flags & 0x41:
        raise ValueError(f"{file}: {described(m.name)} is encrypted, which .npz files are not; unpack the archive and "
                         f"save the arrays with numpy.savez")
    if m.method not in (STORED, DEFLATED):
        raise ValueError(f"{file}: {described(m.name)} is compressed with method {m.method}; .npz files are stored or "
                         f"deflated: save the arrays with numpy.savez or numpy.savez_compressed")
    if m.method == STORED and m.packed != m.nbytes or m.nbytes > RATIO * m.packed:
        damaged(file, f"{described(m.name)} promises {m.nbytes:,} bytes from {m.packed:,}")


def located(file, members, end):
    """The members with the offsets of their bytes, which end before the directory."""
    found, free = {}, 0
    for k in sorted(range(len(members)), key=lambda k: members[k].offset):
        m = members[k]
        if m.offset < free or m.offset + LOCAL.size > end:
            damaged(file, f"{described(m.name)} overlaps another part of it")
        sign, _, _, method, _, _, _, _, _, n_name, n_extra = LOCAL.unpack(file.read(m.offset, LOCAL.size))
        begin = m.offset + LOCAL.size + n_name + n_extra
        if (sign != b"PK\3\4" or method != m.method or n_name != len(m.raw) or begin > end
                or file.read(m.offset + LOCAL.size, n_name) != m.raw):
            damaged(file, f"{described(m.name)} has another header than in the directory")
        free = begin + m.packed
        if free > end: damaged(file, f"{described(m.name)} overlaps another part of it")
        found[k] = m._replace(begin=begin)
    return [found[k] for k in range(len(members))]


class MemberStream:
    """The unpacked bytes of a member in turn. close() checks that all were read and that their checksum is right."""

    def __init__(self, file, member):
        self.file, self.member, self.at, self.left, self.crc = file, member, member.begin, member.packed, 0
        self.unread = member.nbytes
        self.inflate = zlib.decompressobj(-15) if member.method == DEFLATED else None

    def readinto(self, memory):
        """Fill `memory` with the next bytes. Raises ValueError if there are not as many."""
        if memory.nbytes > self.unread: self.short()
        self.unread -= memory.nbytes
        for i in range(0, memory.nbytes, PIECE):
            piece = memory[i:i + PIECE]
            if self.inflate is None:
                self.file.readinto(piece, self.at)
                self.at += piece.nbytes
            else:
                self.unpack(piece)
            self.crc = zlib.crc32(piece, self.crc)

    def unpack(self, memory):
        while memory.nbytes:
            found = self.inflated(memory.nbytes)
            if not found and self.inflate.eof or found is None: self.short()
            memory[:len(found)] = found
            memory = memory[len(found):]

    def inflated(self, most):
        """At most `most` of the next unpacked bytes; None if the packed bytes have ended."""
        source = self.inflate.unconsumed_tail
        if not source and self.left:
            source = self.file.read(self.at, min(self.left, PIECE // 16))
            self.at, self.left = self.at + len(source), self.left - len(source)
        try:
            found = self.inflate.decompress(source, most)
        except zlib.error as e:
            damaged(self.file, f"{described(self.member.name)} cannot be decompressed: {e}")
        return found if found or source else None

    def short(self):
        damaged(self.file, f"{described(self.member.name)} has fewer than the {self.member.nbytes:,} bytes that it "
                           f"promises")

    def close(self):
        """Read the rest, if there is any, and check the end."""
        name = described(self.member.name)
        buffer = memoryview(bytearray(min(PIECE, self.unread)))
        while self.unread: self.readinto(buffer[:self.unread])
        if self.inflate is not None:
            while not self.inflate.eof:
                found = self.inflated(1)
                if found is None: damaged(self.file, f"{name} is incomplete")
                if found: damaged(self.file, f"{name} has more than the {self.member.nbytes:,} bytes that it promises")
            if self.left or self.inflate.unused_data: damaged(self.file, f"{name} has bytes after its end")
        if self.crc != self.member.crc: damaged(self.file, f"{name} has a wrong checksum")
