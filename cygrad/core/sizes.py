"""Converts sizes to text and text to sizes."""

import re

from cygrad.core.errors import described

UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
for _power, _letter in enumerate("kmgt", 1):
    UNITS[_letter + "b"], UNITS[_letter + "ib"] = 1000 ** _power, 1024 ** _power


def read_size(size, what):
    """The number of bytes of an int or of text such as "256MiB", "1.5 GB", "4096". Raises TypeError for another type
    and ValueError for another text or a negative size; `what` begins the message."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
        if not found or found[2].lower() not in UNITS:
            raise ValueError(f"{what}: a size must be a number of bytes or text such as \"256MiB\" or \"1.5GB\" (kB, "
                             f"MB, GB, TB by 1000; KiB, MiB, GiB, TiB by 1024), got {described(size)}")
        whole, _, rest = found[1].partition(".")
        return (int(whole + rest) * UNITS[found[2].lower()]) // 10 ** len(rest)
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"{what}: a size must be an int (bytes) or text such as \"256MiB\", got {described(size)}")
    if size.__index__() < 0:
        raise ValueError(f"{what}: a size must be at least 0 bytes, got {described(size)}")
    return size.__index__()


def words(nbytes):
    """A number of bytes as text: "12.3 MiB (12,897,485 bytes)", or only the bytes below 10 KiB."""
    if nbytes < 10240: return f"{nbytes:,} bytes"
    size, unit = float(nbytes), 0
    while size >= 1024 and unit < 4: size, unit = size / 1024, unit + 1
    return f"{size:.4g} {('', 'KiB', 'MiB', 'GiB', 'TiB')[unit]} ({nbytes:,} bytes)"
