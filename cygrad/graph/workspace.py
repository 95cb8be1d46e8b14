"""Workspace: the values of blobs, and running nets on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, NamedTuple
from weakref import WeakSet, ref

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.execute.program import Program
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray, tensor
from cygrad.graph.definition import PYTHON, check_name
from cygrad.graph.immediate import Immediate, mode
from cygrad.graph.lowering import Run, progress
from cygrad.graph.net import Net
from cygrad.graph.plan import CAPTURE, failed_operator, prepared, running


class Turn:
    """The use of a workspace by a thread, which ends at the latest when this object is freed."""

    __slots__ = "__weakref__", "thread"

    def __init__(self) -> None:
        self.thread = get_ident()


def is_dense(x: Tensor) -> bool:
    """Whether the elements of x are in row-major order without gaps."""
    step = 1
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and stride != step: return False
        step *= n
    return True


class Ready(NamedTuple):
    """A program that can run again on the same memory: neither the net nor these blobs have changed."""

    net: Any
    edits: int
    training: bool | None       # the mode of the thread, if the net has none
    program: Program
    values: dict[str, Tensor]
    written: list[tuple[Tensor, Tensor]]        # inputs that the net writes, and their new values
    blobs: list[tuple[str, Tensor]]


class Workspace:
    """The values of blobs. feed() sets them, run() runs a net on them, fetch() copies them:

        workspace = cg.graph.Workspace()
        workspace.feed("x", x)
        workspace.run(net)
        y = workspace.fetch("y")

    The first run of a net for inputs of given shapes plans its memory, which the workspace keeps for later runs. A
    workspace serves one thread at a time: feed, run, fetch and free from another thread while it is in use raise
    RuntimeError."""

    def __init__(self) -> None:
        self._blobs: dict[str, Tensor] = {}
        self._own: set[str] = set()                 # blobs whose memory no other blob, net or program has
        self._made: dict[str, Program] = {}         # the programs in whose memory other blobs are
        self._programs: dict[Any, tuple[Any, Program | None]] = {}
        self._ready: dict[int, Ready] = {}
        self._turn: dict[str, ref[Turn]] = {}       # {"now": the use that is going on}

    @contextmanager
    def _used(self, who: str) -> Iterator[Turn]:
        """The workspace is in use by this thread. (dict.setdefault is atomic. An interrupt between any two lines leaves
        no lock behind, because the Turn is freed with this frame.)"""
        turn = Turn()
        mine = ref(turn)
        try:
            found = self._turn.setdefault("now", mine)
            if found is not mine:
                other = found()
                if other is not None:
                    if other.thread != turn.thread:
                        raise RuntimeError(f"Workspace.{who}: another thread is using this workspace, or a net runs in "
                                           f"it; wait for it, or use another workspace")
                    raise RuntimeError(f"Workspace.{who}: a net is running in this workspace; use another one inside "
                                       f"the function of an operator")
                self._turn["now"] = mine
            yield turn
        finally:
            if self._turn.get("now") is mine: del self._turn["now"]

    # ---- values

    def feed(self, name: str, array: Any) -> None:
        """Set a blob to a copy of an array, tensor or number. A blob of the same shape and dtype keeps its memory.
        Raises TypeError or ValueError for a name or data that cannot be used."""
        blob = str(check_name(name, "Workspace.feed"))
        with self._used("feed"):
            new = array.detach() if isinstance(array, Tensor) else asarray(array)
            self._set(blob, new)

    def _set(self, blob: str, new: Tensor) -> None:
        """Set a blob to a copy, in its own memory if it has the size."""
        old = self._blobs.get(blob)
        if old is not None and blob in self._own and old.shape == new.shape and old.dtype == new.dtype: old.copy_(new)
        else: self._blobs[blob] = tensor(new)
        self._own.add(blob)
        self._made.pop(blob, None)

    def fetch(self, name: str) -> Tensor:
        """A copy of the value of a blob. Raises ValueError if it has none: it was not fed, no net has written it, or
        its memory was shared with later blobs."""
        blob = str(check_name(name, "Workspace.fetch"))
        with self._used("fetch"):
            if blob not in self._blobs:
                raise ValueError(f"Workspace.fetch: the blob {described(blob)} has no value; the blobs with values are "
                                 f"{cut(', '.join(self._blobs)) or 'none'}; a net keeps its outputs, and of blobs that "
                                 f"share memory those in dont_share_blobs")
            return tensor(self._blobs[blob])

    def free(self, name: str) -> None:
        """Forget the value of a blob. Raises ValueError if it has none."""
        blob = str(check_name(name, "Workspace.free"))
        with self._used("free"):
            if blob not in self._blobs: raise ValueError(f"Workspace.free: the blob {described(blob)} has no value")
            del self._blobs[blob]
            self._own.discard(blob)
            self._made.pop(blob, None)

    @property
    def blobs(self) -> tuple[str, ...]:
        """The names of the blobs that have values."""
        return tuple(self._blobs)

    def __contains__(self, name: object) -> bool:
        return name in self._blobs

    def immediate(self) -> Immediate:
        """A scope in which this thread runs each operator as it is added to a net, on the blobs of this workspace:

            with workspace.immediate():
                y = net.mul(["x", "w"])
                print(workspace.fetch(y))

        Gradient operators run one by one too, so each contribution to a gradient can be fetched. If an operator fails,
        it is not added. Scopes can be nested; leaving one, also by an exception, restores the mode before it."""
        return Immediate(self._blobs, self._used, self._keep)

    def _keep(self, read: set[str], made: dict[str, Tensor]) -> None:
        """Set the blobs `made`. Later writes do not change the memory of these, nor of those that were read."""
        self._blobs.update(made)
        self._own -= read | {*made}
        for name in made: self._made.pop(name, None)

    # ---- running

    def run(self, net: Net) -> None:
        """Run all operators of a net. Its inputs must have been fed, or written by other nets. The outputs and the
        blobs that the net keeps have values afterwards. Raises ValueError for an input without a value, and the errors
        of operators; these have a note that lists the operators that ran."""
        if not isinstance(net, Net): raise TypeError(f"Workspace.run takes a Net, got {described(net)}")
        with self._used("run") as turn:
            running.setdefault(net, WeakSet()).add(turn)
            ready = self._ready.get(id(net))
            if ready is not None and self._is_ready(ready, net):
                self._run(net, ready.program, ready.values, again=True)
                for old, new in ready.written: old.copy_(new)
            else: self._run_anew(net)

    def _is_ready(self, ready: Ready, net: Net) -> bool:
        """Whether nothing has changed since the program of a net ran on these blobs."""
        if ready.net() is not net or ready.edits != net.edits: return False
        if ready.training is not None and ready.training != autograd.is_training(): return False
        for name, x in ready.blobs:
            if self._blobs.get(name) is not x: return False
        return True

    def _run_anew(self, net: Net) -> None:
        """Run a net whose program, or some of whose blobs, may be other ones than in its last run."""
        values = {str(name): self._input(net, name) for name in net.inputs}
        program = self._program(net, values)
        found = self._interpreted(net, values) if program is None else self._run(net, program, values)
        for name, y in found.items():
            if name in values: self._set(name, y)   # (an input stays where the program reads it)
            else:
                self._blobs[name] = y
                self._own.discard(name)
                if program is None: self._made.pop(name, None)
                else: self._made[name] = program
        self._ready.pop(id(net), None)
        if program is None or not all(is_dense(x) for x in values.values()): return
        written = [(self._blobs[name], y) for name, y in found.items() if name in values]
        blobs = [(name, self._blobs[name]) for name in (*values, *found)]
        training = autograd.is_training() if net.training is None else None
        if all(self._blobs[name] is x for name, x in values.items()):
            self._ready[id(net)] = Ready(ref(net), net.edits, training, program, values, written, blobs)

    def _interpreted(self, net: Net, values: dict[str, Tensor]) -> dict[str, Any]:
        """Run a net without a program. Results that are views of inputs are copied."""
        with mode(net): found = Run(net, values, net.kept).execute()
        inputs = [x.numpy() for x in values.values()]
        return {name: tensor(y) if any(np.may_share_memory(y.numpy(), x) for x in inputs) else y
                for name, y in found.items()}

    def _run(self, net: Net, program: Program, values: dict[str, Tensor], again: bool = False) -> dict[str, Any]:
        """Run the program of a net; `again`: on the same memory as in its last run. If it fails, its results have no
        values, because their memory was written."""
        try: return program.again() if again else program.run(*values.values())
        except BaseException as e:
            for name in [name for name, made in self._made.items() if made is program]:
                del self._blobs[name], self._made[name]
            if isinstance(e, Exception):
                at = failed_operator(net, values, e)
                if at is not None: e.add_note(progress(net, *at, {**net.constants, **values}))
            raise

    def _input(self, net: Net, name: str) -> Tensor:
        if name in self._blobs: return self._blobs[name]
        raise ValueError(f"Workspace.run: the input {described(str(name))} of net {cut(net.name)} has no value; feed "
                         f"it first; the inputs are {', '.join(net.inputs)}")

    def _program(self, net: Net, values: dict[str, Tensor]) -> Program | None:
        """The program of a net for inputs of the shapes of `values`; None if an operator calls Python functions, or
        does something else that a program would not repeat."""
        inputs = {name: (x.shape, np.dtype(x.dtype).name) for name, x in values.items()}
        training = autograd.is_training() if net.training is None else net.training
        key = id(net), net.edits, training, tuple(inputs.items())
        known = self._programs.get(key)
        if known is not None and known[0]() is net: return known[1]
        for old, (owner, _) in list(self._programs.items()):        # (of other versions of this net, or of no net)
            if owner() is None or owner() is net and old[1] != net.edits: del self._programs[old]
        program = None
        if not any(o.type == PYTHON for o in net.operators):
            try: program = prepared(net, inputs, net.kept)
            except RuntimeError as e:
                if not str(e).startswith(CAPTURE): raise
        self._programs[key] = ref(net), program
        return program
