"""Workspace: the values of blobs, and running nets on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, NoReturn
from weakref import ref

import numpy as np

from cygrad.core.errors import cut, described
from cygrad.core.execute.program import Program
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray, tensor
from cygrad.graph.definition import check_name
from cygrad.graph.immediate import Immediate
from cygrad.graph.lowering import Run
from cygrad.graph.net import Net
from cygrad.graph.plan import mode, prepared


def is_dense(x: Tensor) -> bool:
    """Whether the elements of x are in row-major order without gaps."""
    step = 1
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and stride != step: return False
        step *= n
    return True


class Ready(NamedTuple):
    """A program that can run again on the same memory, while the net and the workspace have changed no further."""

    net: Any
    edits: int
    changes: int
    program: Program
    written: list[tuple[Tensor, Tensor]]        # inputs that the net writes, and their new values


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
        self._programs: dict[Any, tuple[Any, Program | None]] = {}
        self._ready: dict[int, Ready] = {}
        self._changes = 0                           # how often a blob has got other memory
        self._lock = Lock()

    @contextmanager
    def _used(self, who: str) -> Iterator[None]:
        """The workspace is in use by this thread."""
        if not self._lock.acquire(blocking=False): self._refuse(who)
        try: yield
        finally: self._lock.release()

    def _refuse(self, who: str) -> NoReturn:
        raise RuntimeError(f"Workspace.{who}: another thread is using this workspace, or a net runs in it; wait for it, "
                           f"or use another workspace")

    # ---- values

    def feed(self, name: str, array: Any) -> None:
        """Set a blob to a copy of an array, tensor or number. A blob of the same shape and dtype keeps its memory.
        Raises TypeError or ValueError for a name or data that cannot be used."""
        blob = str(check_name(name, "Workspace.feed"))
        with self._used("feed"):
            new = array.detach() if isinstance(array, Tensor) else asarray(array)
            old = self._blobs.get(blob)
            if old is not None and old.shape == new.shape and old.dtype == new.dtype: old.copy_(new)
            else:
                self._blobs[blob] = tensor(new)
                self._changes += 1

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
            self._changes += 1

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
        return Immediate(self)

    # ---- running

    def run(self, net: Net) -> None:
        """Run all operators of a net. Its inputs must have been fed, or written by other nets. The outputs and the
        blobs that the net keeps have values afterwards. Raises ValueError for an input without a value, and the errors
        of operators; these have a note that lists the operators that ran."""
        if not isinstance(net, Net): raise TypeError(f"Workspace.run takes a Net, got {described(net)}")
        if not self._lock.acquire(blocking=False): self._refuse("run")
        try:
            ready = self._ready.get(id(net))
            if ready is None or ready.net() is not net or (ready.edits, ready.changes) != (net.edits, self._changes):
                self._run_anew(net)
            else:
                ready.program.again()
                for old, new in ready.written: old.copy_(new)
        finally: self._lock.release()

    def _run_anew(self, net: Net) -> None:
        """Run a net whose program, or some of whose inputs, may be other ones than in its last run."""
        values = {name: self._input(net, name) for name in net.inputs if name not in net.bindings}
        program = self._program(net, values)
        if program is None:
            with mode(net): found = Run(net, values, net.kept).execute()
        else: found = program.run(*values.values())
        written = [(values[name], y) for name, y in found.items() if name in values]
        for old, new in written: old.copy_(new)     # (an input stays where the program reads it)
        for name, y in found.items():
            if name in values or self._blobs.get(name) is y: continue
            self._blobs[name] = y
            self._changes += 1
        if program is not None and all(is_dense(x) for x in values.values()):
            self._ready[id(net)] = Ready(ref(net), net.edits, self._changes, program, written)

    def _input(self, net: Net, name: str) -> Tensor:
        if name in self._blobs: return self._blobs[name]
        raise ValueError(f"Workspace.run: the input {described(str(name))} of net {cut(net.name)} has no value; feed it "
                         f"first; the inputs are {', '.join(net.inputs)}")

    def _program(self, net: Net, values: dict[str, Tensor]) -> Program | None:
        """The program of a net for inputs of the shapes of `values`; None if an operator calls Python functions that
        need values."""
        inputs = {name: (x.shape, np.dtype(x.dtype).name) for name, x in values.items()}
        key = id(net), net.edits, tuple(inputs.items())
        known = self._programs.get(key)
        if known is not None and known[0]() is net: return known[1]
        for old, (owner, _) in list(self._programs.items()):        # (of other versions of this net, or of no net)
            if owner() is None or owner() is net and old[1] != net.edits: del self._programs[old]
        program: Program | None
        try: program = prepared(net, inputs, net.kept)
        except RuntimeError as e:
            if not str(e).startswith("capture: ") or not any(o.function for o in net.operators): raise
            program = None
        self._programs[key] = ref(net), program
        return program
