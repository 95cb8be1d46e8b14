"""What checks are written with, and how a check and the reader's file meet."""

import contextlib
import sys
import traceback
import types
from pathlib import Path
from typing import NamedTuple

import numpy as np

import cygrad as cg


class Wrong(AssertionError):
    """What a check has found: what came, what is right, and what to look at."""


class Verdict(NamedTuple):
    """The result of a check. `state` is "passed"; "new" if the file is as it was given; "missing"; "syntax"; "wrong" if
    the check says why; "error" if the file raised something else; "time"; or "crash"."""

    state: str
    text: str = ""

    @property
    def passed(self): return self.state == "passed"


class ReaderFile:
    """The names of the reader's file. A function that returns None is wrong at once; `module` has the plain names."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        expect(hasattr(self.module, name), f"The file has no `{name}` any more, which the check needs. (`--reset` "
                                           "writes the file anew and keeps yours.)")
        value = getattr(self.module, name)
        if not isinstance(value, types.FunctionType): return value

        def call(*args, **kwargs):
            result = value(*args, **kwargs)
            expect(result is not None, f"{name} returns None: its gap is not filled, or a `return` is missing.")
            return result

        return call


def expect(condition, message):
    """Raise Wrong with the message unless the condition is true."""
    if not condition: raise Wrong(message)


def pair(what, got):
    """The two elements of a tuple or list; Wrong if `got` is something else. `what` says what it should be."""
    expect(isinstance(got, (tuple, list)) and len(got) == 2, f"The function returns {shown(got)}, but {what} is right: "
                                                             "two values in a tuple.")
    return got


def equal(what, got, right, look, mistakes=(), rtol=1e-4):
    """Raise Wrong unless `got` is `right`, numbers to `rtol` (0: to the bit). `what` begins the sentence, `look` says
    what to look at. `mistakes` are pairs: a wrong result that has one likely cause, and a sentence about it in place
    of `look`."""
    found = difference(got, right, rtol)
    if found is None: return
    causes = [text for value, text in mistakes if difference(got, value, rtol or 1e-5) is None]
    raise Wrong(f"{what} {found}. {causes[0] if causes else look}")


def difference(got, right, rtol):
    """None if both are equal, else the predicate of a sentence about the difference."""
    a, b = plain(got), plain(right)
    if not all(isinstance(v, np.ndarray) and v.dtype.kind in "biufc" for v in (a, b)):
        same = type(a) is not np.ndarray and type(b) is not np.ndarray and a == b
        return None if same else f"is {shown(got)}, but {shown(right)} is right"
    if a.shape != b.shape: return f"has shape {a.shape}, but {b.shape} is right"
    atol = 1e-6 * max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0))) if rtol else 0.0
    with np.errstate(all="ignore"): near = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if near.all(): return None
    if a.size <= 12: return f"is {shown(got)}, but {shown(right)} is right"
    at = tuple(map(int, np.argwhere(~near)[0]))
    return f"is {shown(a[at])} at {list(at)}, but {shown(b[at])} is right ({(~near).sum()} of {a.size} elements differ)"


def plain(x):
    """A tensor, a number or a nested list of numbers as an array; anything else as it is."""
    if isinstance(x, cg.Tensor): return x.detach().numpy()
    if isinstance(x, np.ndarray): return x
    if isinstance(x, (bool, int, float, complex, np.generic)): return np.asarray(x)
    if isinstance(x, (list, tuple)) and x:
        with contextlib.suppress(ValueError):
            array = np.asarray([plain(v) for v in x])
            if array.dtype.kind in "biufc": return array
    return x


def shown(x):
    """A short text of a value."""
    a = plain(x)
    if isinstance(a, np.floating) or isinstance(a, np.ndarray) and a.ndim == 0 and a.dtype.kind == "f":
        return f"{float(a):.7g}"
    if isinstance(a, np.ndarray) and a.dtype.kind in "fc":
        text = np.array2string(a, separator=", ", threshold=20, formatter={"float_kind": lambda v: f"{v:.6g}"})
        return " ".join(text.split())
    if isinstance(a, np.ndarray): return str(a.tolist())
    text = repr(x)
    return text if len(text) <= 100 else text[:97] + "..."


def live():
    """The live bytes."""
    return cg.memory.stats()["live_bytes"]


def judge(path, exercise):
    """Run the file at `path` and the check of the exercise, in this process. Returns a Verdict."""
    path = Path(path)
    try: source = path.read_bytes()
    except OSError as e: return Verdict("missing", f"{path} cannot be read: {e.strerror}")
    if source == exercise.file.read_bytes(): return Verdict("new", exercise.task)
    try: code = compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as e: return Verdict("syntax", unreadable(e))
    name, threads = path.stem, cg.get_num_threads()
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    cg.set_num_threads(1)                           # (each thread has a workspace, which the bytes of checks do not)
    try:
        exec(code, vars(module))
        exercise.check(ReaderFile(module))
    except KeyboardInterrupt: raise
    except Wrong as e: return Verdict("wrong", str(e))
    except BaseException as e: return explained(e, path)
    finally:
        cg.set_num_threads(threads)
        del sys.modules[name]
    return Verdict("passed")


def unreadable(e):
    """The text for an exception of compile(): the line, and the place in it."""
    if getattr(e, "lineno", None) is None: return f"Python cannot read the file: {e}"
    line = (e.text or "").rstrip("\n")
    there = f"\n    {line}\n    {' ' * ((e.offset or 1) - 1)}^" if line.strip() else ""
    return f"Python cannot read line {e.lineno}: {e.msg}{there}"


def explained(e, path):
    """The Verdict for an exception that is no Wrong: its type, its text, and where in the file it came from."""
    text = "".join(traceback.format_exception_only(type(e), e)).strip()
    frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == str(path)]
    if frames:
        return Verdict("error", f"{text}\n    line {frames[-1].lineno}, in {frames[-1].name}: {frames[-1].line}")
    return Verdict("error", f"{text}\n    (raised in the check, by what the file computed)")
