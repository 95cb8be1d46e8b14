"""save, load and metadata: checks the arguments, and leaves the format to safetensors.py or npz.py."""

import errno
import mmap as maps
import os
import sys
from collections.abc import Mapping
from os import PathLike

import numpy as np
import numpy.typing as npt

from cygrad.core.dtypes import DTYPES, read_dtype
from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.handles import Input, Mapped, Replacing
from cygrad.core.interop.creation import empty
from cygrad.core.interop.numpy import asarray
from cygrad.core.paths import file_path
from cygrad.core.sizes import read_size, words
from cygrad.core.store.buffer import stats
from cygrad.io import npz, safetensors
from cygrad.io.entries import check_bools, fill, loaded_dtype, work_bytes

FORMATS = {".safetensors": safetensors, ".npz": npz, ".cg": safetensors}       # (.cg: a net, of nets/files.py)
FLOATS = [d for d in DTYPES if d.kind == "f"]
SMALL, TIMES = 256 << 20, 100       # without max_bytes, a file is loaded into at most SMALL or TIMES its own size


def format_of(path, who):
    """(name of the file, module of its format)."""
    name = file_path(path, who, "model.safetensors")
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in FORMATS:
        raise ValueError(f"{who}: the path must end with .safetensors or .npz, which is the format, got "
                         f"{cut(repr(name))}")
    return name, FORMATS[suffix]


def save(path: str | PathLike[str], tensors: Mapping[str, Tensor | npt.ArrayLike],
         metadata: Mapping[str, str] | None = None) -> None:
    """Write a dict of names and tensors to `path`, which ends with .safetensors or .npz.

    A tensor can also be anything that `asarray` accepts, such as a NumPy array. The file contains names, dtypes, shapes
    and elements, in the order of the dict, and `metadata`, a dict of strings that `io.metadata` reads. It does not
    contain requires_grad, gradients or graphs. Tensors that share memory are written separately.

    The save is atomic: a new file in the same directory is written, flushed to disk and renamed, so `path` is the old
    file or the new one at every moment. An exception removes the new file; a killed process may leave it behind, as
    .cygrad-*.tmp. Contiguous tensors are written without a copy, others (and bools) through a buffer of 1 MiB.

    Raises TypeError for arguments of other types, ValueError for another suffix or a name that the format does not
    allow, and OSError if the file cannot be written; the old file is then as it was."""
    write(path, tensors, metadata, "save")


def write(path, tensors, metadata, who):
    """save(), for the function `who`, which errors name."""
    name, form = format_of(path, who)
    if not isinstance(tensors, Mapping):
        raise TypeError(f"{who}: tensors must be a dict of names and tensors, got {described(tensors)}")
    arrays = {key: read_tensor(key, value, who) for key, value in tensors.items()}
    strings = {} if metadata is None else read_strings(metadata, who)
    form.check_names(arrays, who)
    with Replacing(name, who) as file: form.write(file, arrays, strings, who)


def read_tensor(name, value, who):
    """The array of a tensor that is saved under `name`."""
    if not isinstance(name, str): raise TypeError(f"{who}: the name of a tensor must be a str, got {described(name)}")
    if name == "__metadata__" or not is_text(name):
        raise ValueError(f"{who}: a tensor cannot have the name {described(name)}: __metadata__ is for metadata, and a "
                         f"name must be valid Unicode; rename it")
    try:
        return asarray(value).detach().numpy()
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise type(e)(f"{who}: {described(name)} is not a tensor that can be saved: {e}") from None


def read_strings(metadata, who):
    """A copy of the metadata, checked."""
    if not isinstance(metadata, Mapping):
        raise TypeError(f"{who}: metadata must be a dict of strings, got {described(metadata)}")
    found = dict(metadata)
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{who}: metadata must be a dict of strings, got {described(value)} for {described(key)}; "
                            f"convert it, with str() or json.dumps()")
        if not is_text(key) or not is_text(value):
            raise ValueError(f"{who}: metadata must be valid Unicode, got {described(value)} for {described(key)}")
    return found


def is_text(text):
    """Whether a str can be written as UTF-8: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def load(path: str | PathLike[str], *, dtype: npt.DTypeLike | None = None, mmap: bool = False,
         max_bytes: int | str | None = None) -> dict[str, Tensor]:
    """Read the tensors of a .safetensors or .npz file: a dict of plain tensors, not variables, in the order of the
    file.

    `dtype`, float32 or float64, is the dtype of the floating-point tensors; they are converted to it. Integers and
    bools keep theirs. cygrad has no float16 and bfloat16; tensors of these are loaded only if a dtype is given, and
    their conversion is exact.

    With mmap=True, the tensors of a .safetensors file share the memory of the mapped file and refuse writes. They are
    read from disk when they are used (bools at once, to check them), and count as `external_bytes`. These tensors are
    copied as without mmap: those that `dtype` converts, those without elements, and those whose position in the file is
    not a multiple of their itemsize. `save` and the safetensors package (since 2023) align all tensors; the format does
    not require it, and a writer that does not pad the header may leave all of them unaligned. A copy can be written,
    so `x.numpy().flags.writeable` tells it from a mapped tensor. Replacing a mapped file, as `save` does, is safe.
    Writing into it changes the tensors, and truncating it crashes the process at the next use.

    The header is checked, and compressed arrays are unpacked once for their length and checksum, before memory is taken
    for the tensors. Apart from them, loading needs memory for the header, and to convert elements at most 1 MiB, which
    counts as that of a tensor. Nothing in a file is run. A file whose tensors need more than `max_bytes` (an int, or
    text such as "2GiB") is refused. The default is no limit for .safetensors, and 100 times the size of the file, but
    at least 256 MiB, for .npz, which can be compressed.

    Raises ValueError for a file that is malformed or has a dtype that cygrad does not load, MemoryLimitError (and
    MemoryError, if the system has no memory for the tensors) before the data is read, and OSError, such as
    FileNotFoundError, as the system raises it."""
    return read(path, "load", dtype, mmap, max_bytes)


def read(path, who, dtype=None, mmap=False, max_bytes=None):
    """load(), for the function `who`, which errors name."""
    name, form = format_of(path, who)
    if dtype is not None and (dtype := read_dtype(dtype)) not in FLOATS:
        raise ValueError(f"{who}: dtype must be float32 or float64, the dtype of floating-point tensors, got {dtype}")
    if mmap and form is npz:
        raise ValueError(f"{who}: only .safetensors files can be mapped, got {cut(repr(name))}; pass mmap=False")
    if max_bytes is not None: max_bytes = read_size(max_bytes, f"{who}: max_bytes")
    with Input(name, who) as file:
        entries = [(e, loaded_dtype(e, dtype, file)) for e in form.read_entries(file)]
        shared = mapped(file, entries) if mmap else {}
        copied = [(e, d) for e, d in entries if e.name not in shared]
        check_size(file, total(copied), max_bytes, form)
        form.verify(file, [e for e, _ in copied])
        check_memory(file, copied)
        made = {e.name: allocated(file, described(e.name), e.shape, d) for e, d in copied}
        most = max((work_bytes(e, d) for e, d in copied), default=0)
        work = allocated(file, "conversions", (most,), "uint8").numpy() if most else None
        tensors = {e.name: shared[e.name] if e.name in shared else made[e.name] for e, _ in entries}
        for e, _ in copied:
            stream = form.Stream(file, e)
            fill(tensors[e.name].numpy(), e, stream, file, work)
            stream.close()
    return tensors


def check_size(file, nbytes, max_bytes, form):
    """Raise ValueError if the tensors take more than max_bytes, or unpack into suspiciously many."""
    if max_bytes is not None and nbytes > max_bytes:
        raise ValueError(f"{file} needs {words(nbytes)} for its tensors, more than max_bytes, {words(max_bytes)}; "
                         f"raise max_bytes if that is right")
    if max_bytes is None and form is npz and nbytes > max(SMALL, TIMES * file.size):
        raise ValueError(f"{file} needs {words(nbytes)} for its tensors, but has {words(file.size)}: more than {TIMES} "
                         f"times its size may be a trap; pass max_bytes=\"{-(-nbytes >> 20)}MiB\" if it is right")


def total(entries):
    """The bytes of the tensors of (Entry, dtype)."""
    return sum(e.nbytes // e.stored.itemsize * d.itemsize for e, d in entries)


def check_memory(file, entries):
    """Raise MemoryError if the system refuses one block for all tensors. Holes in a file cost no disk, so a file can
    need any amount. Of several blocks, the system gives each that is smaller than its memory, and kills the process
    when they are filled."""
    nbytes = min(total(entries) - stats()["cached_bytes"], sys.maxsize)
    if nbytes < SMALL: return
    try:
        maps.mmap(-1, nbytes, maps.MAP_PRIVATE | maps.MAP_ANONYMOUS).close()
    except OSError as e:
        if e.errno != errno.ENOMEM: raise
        largest = max((e for e, _ in entries), key=lambda e: e.nbytes)
        raise MemoryError(f"{file} needs {words(total(entries))} for its tensors, which the system cannot provide; the "
                          f"largest is {described(largest.name)}, {largest.kind} of shape {largest.shape}; map a "
                          f".safetensors file with mmap=True") from None


def allocated(file, what, shape, dtype):
    """Memory. An error names the file, and what the memory is for."""
    try:
        return empty(shape, dtype=dtype)
    except MemoryError as e:
        e.args = f"{file}: no memory for {what}, {dtype} of shape {shape}: {e}",
        raise


def mapped(file, entries):
    """name -> tensor on the mapped file, for each entry that needs no conversion and is aligned."""
    fit = [e for e, d in entries if e.nbytes and e.stored == d and e.place % d.itemsize == 0]
    if not fit: return {}
    try:
        memory = Mapped(file)
    except OSError as error:
        if error.errno != errno.ENOMEM: raise
        raise MemoryError(f"{file}: no address space to map its {words(file.size)}; raise the limit of the process "
                          f"(ulimit -v)") from None
    found = {}
    for e in fit:
        array = np.frombuffer(memory, e.stored, e.nbytes // e.stored.itemsize, e.place).reshape(e.shape)
        check_bools(array, e, file)
        found[e.name] = asarray(array)
    return found


def metadata(path: str | PathLike[str]) -> dict[str, str]:
    """The metadata of a .safetensors or .npz file, a dict of strings; {} if it has none. Reads only the headers. Raises
    as `load` does."""
    return read_metadata(path, "metadata")


def read_metadata(path, who):
    """metadata(), for the function `who`, which errors name."""
    name, form = format_of(path, who)
    with Input(name, who) as file: return form.read_metadata(file)
