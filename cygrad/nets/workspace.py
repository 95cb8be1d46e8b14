"""Workspace: the values of blobs, and running nets on them."""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from cygrad.core.errors import MemoryLimitError, cut, described
from cygrad.core.execute.program import Program
from cygrad.core.graph.checksums import checksum_of
from cygrad.core.graph.scopes import unscoped
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray, tensor
from cygrad.core.sizes import read_size
from cygrad.core.store.buffer import stats
from cygrad.memory.budgets import budget
from cygrad.nets.definition import Names, check_name, check_names, written
from cygrad.nets.hooks import Hook, Hooks
from cygrad.nets.immediate import Immediate, mode
from cygrad.nets.lowering import Run, progress
from cygrad.nets.net import Net
from cygrad.nets.plan import CAPTURE, eager_only, prepared
from cygrad.nets.state import NetState, state_of
from cygrad.nets.subnets import is_python
from cygrad.nets.turns import Lock, LockUse

Values = dict[str, Tensor]
NONE: tuple[str, ...] = ()
KEPT = 4                    # programs of a net for the same inputs, in other modes or for other variables


def is_dense(x: Tensor) -> bool:
    """Whether the elements of x are in row-major order without gaps."""
    step = 1
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and stride != step: return False
        step *= n
    return True


def dense(values: Values, names: Collection[str]) -> Values:
    """`values` with dense copies of those among `names` that are not."""
    with unscoped(): return {name: tensor(x) if name in names and not is_dense(x) else x for name, x in values.items()}


def is_current(owner: Net | None, edits: int, net: Net) -> bool:
    """Whether what was kept for `owner` may serve again: it exists, and if it is `net`, it has not changed."""
    return owner is not None and (owner is not net or edits == net.edits)


def data(array: Any, blob: str) -> Tensor:
    """`array` as a tensor."""
    try: return asarray(array)
    except (TypeError, ValueError) as e:
        raise type(e)(f"Workspace.feed: the value of {described(blob)} must be a number, an array or a tensor: "
                      f"{e}") from None


class Ready(NamedTuple):
    """A program that can run again on the same memory: neither the net nor these blobs have changed."""

    net: Any
    edits: int
    program: Program
    values: Values
    rewritten: list[tuple[Tensor, Tensor]]      # inputs that the net writes, and their new values
    blobs: list[tuple[str, Tensor]]
    others: frozenset[str]      # blobs that have no values after a run
    changes: int                # counts changes of the workspace's blobs


class ForwardRun(NamedTuple):
    """What backward() needs after forward()."""

    net: Any
    edits: int
    program: Program
    values: Values
    versions: list[tuple[str, Tensor, int, bytes | None]]       # what the backward part may read from outside
    blobs: dict[str, Tensor | None]             # the inputs and the results of the forward part
    forgets: set[str]           # the blobs that only forward() keeps


class Workspace:
    """The values of blobs. feed() sets them, run() runs a net on them, fetch() copies them:

        workspace = cg.graph.Workspace()
        workspace.feed("x", x)
        workspace.run(net)
        y = workspace.fetch("y")

    The first run of a net for inputs of given shapes plans its memory, which the workspace keeps for later runs. A run
    does what its operators do in eager code at that moment; what decides this beside the values is listed in
    core/graph/around. In a GradientCollector, detect_anomaly() or saved_tensors_hooks(), and if a variable has a hook,
    eager code runs the net, without a plan.

    budget: what the live bytes of the whole process, as memory.stats() counts them, stay under in runs, an int or a
    string such as "64MiB". The plan of a net then has steps that run again where values do not fit until they are read,
    with the same bits. What is live when a run begins decides what is left; if that has become too little, the run is
    planned again. Raises MemoryLimitError, before anything runs or is forgotten, if there is no plan, with the least
    that is enough. A net without a plan runs in a memory.budget(). immediate() is not bounded.

    A workspace serves one thread at a time: feed, run, fetch and free from another thread while it is in use raise
    RuntimeError."""

    def __init__(self, budget: int | str | None = None) -> None:
        self._budget = None if budget is None else read_size(budget, "Workspace")
        self._blobs: dict[str, Tensor] = {}
        self._changes = 0                           # counts changes of _blobs
        self._own: set[str] = set()                 # blobs whose memory no other blob, net or program has
        self._made: dict[str, Program] = {}         # the programs in whose memory other blobs are
        self._programs: dict[Any, tuple[Any, list[Program] | None]] = {}
        self._ready: dict[Any, Ready] = {}          # by the ids of nets, or (id, names) of run(keep=names)
        self._begun: dict[int, ForwardRun] = {}          # the forward parts, by the ids of their nets
        self._turn: Lock = {}

    def _used(self, who: str, net: Net | None = None, lock: Lock | None = None) -> LockUse:
        """The scope in which this workspace, and a net that it runs, whose lock is given too, are in use by this
        thread."""
        turn = LockUse(self._turn) if lock is None else LockUse(self._turn, lock)
        for lock, other in turn.others:
            if lock is not self._turn and other.thread == turn.thread: continue     # (this thread runs it elsewhere)
            turn.__exit__()
            if lock is not self._turn and net is not None:
                raise RuntimeError(f"Workspace.{who}: net {cut(net.name)} runs in another thread; wait for it, or run "
                                   f"a clone()")
            if other.thread != turn.thread:
                raise RuntimeError(f"Workspace.{who}: another thread is using this workspace, or a net runs in it; "
                                   f"wait for it, or use another workspace")
            raise RuntimeError(f"Workspace.{who}: a net is running in this workspace; use another one inside the "
                               f"function of an operator")
        return turn

    # ---- values

    def feed(self, name: str, array: Any) -> None:
        """Set a blob to a copy of an array, tensor or number. A blob of the same shape and dtype keeps its memory.
        Raises TypeError or ValueError for a name or data that cannot be used."""
        blob = name if type(name) is str and name in self._blobs else str(check_name(name, "Workspace.feed"))
        with self._used("feed"): self._set(blob, array.detach() if isinstance(array, Tensor) else data(array, blob))

    def _set(self, blob: str, new: Tensor) -> None:
        """Set a blob to a copy, in its own memory if it has the size."""
        old = self._blobs.get(blob)
        if old is not None and blob in self._own and old.shape == new.shape and old.dtype == new.dtype: old.copy_(new)
        else:
            with unscoped(): self._blobs[blob] = tensor(new)
            self._changes += 1
        self._own.add(blob)
        self._made.pop(blob, None)

    def fetch(self, name: str) -> Tensor:
        """A copy of the value of a blob. Raises ValueError if it has none: it was not fed, no net has written it, or
        its memory was shared with later blobs."""
        blob = str(check_name(name, "Workspace.fetch"))
        with self._used("fetch"):
            if blob not in self._blobs:
                raise ValueError(f"Workspace.fetch: the blob {described(blob)} has no value; the blobs with values are "
                                 f"{cut(', '.join(self._blobs)) or 'none'}; a net keeps its outputs and what was given "
                                 f"a name, after share_blobs() only what that names; run(net, keep=[{blob!r}]) keeps "
                                 f"it; forward() keeps all blobs")
            return tensor(self._blobs[blob])

    def free(self, name: str) -> None:
        """Forget the value of a blob. Raises ValueError if it has none."""
        blob = str(check_name(name, "Workspace.free"))
        with self._used("free"):
            if blob not in self._blobs: raise ValueError(f"Workspace.free: the blob {described(blob)} has no value")
            self._forget(blob)

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
        self._changes += 1
        self._own -= read | {*made}
        for name in made: self._made.pop(name, None)

    # ---- running

    def run(self, net: Net, before: Hook | None = None, after: Hook | None = None,
            keep: Names = NONE) -> None:
        """Run all operators of a net. Its inputs must have been fed, or written by other nets. The outputs and the
        blobs that the net keeps have values afterwards, and the blobs `keep`, a name or a list of names. Raises
        ValueError for an input without a value and for an unknown name in `keep`, RuntimeError if another thread runs
        the net, and the errors of operators; these have a note that lists the operators that ran.

        before, after: functions that are called before and after each operator, with it and a dict of the values of
        blobs. Such a run is one of eager code, without a plan, and has the same bits. Contributions to a gradient that
        are not kept are added to their sum as they are computed, so the dict has the sum."""
        if not isinstance(net, Net): raise TypeError(f"Workspace.run takes a Net, got {described(net)}")
        state, names = state_of(net), NONE
        key: Any = id(net)
        with self._used("run", net, state.lock):
            if keep is not NONE:
                names = check_names(keep, "Workspace.run", "keep")
                for name in names: state.need(name, "Workspace.run")
                key = id(net), names
            if before is not None or after is not None:
                self._run_watched(net, before, after, net.kept.union(names))
                return
            ready = self._ready.get(key)
            if ready is not None and self._is_ready(ready, net, state.edits, key):
                self._run(net, ready.program, ready.values, ready.program.again)
                for old, new in ready.rewritten: old.copy_(new)
                return
            del ready                               # (so that the memory of its program can go)
            self._run_anew(net, names, key)

    def forward(self, net: Net, clear_no_need_grad: bool = False) -> None:
        """Run the operators before the first gradient operator, for backward(). All blobs that they write have values
        until backward() clears them; with clear_no_need_grad only those that the net keeps, which takes less memory.
        Memory that backward() reads is not used for anything else, so run() takes less. Gradients of an earlier run
        have no values afterwards. Raises as run(), and RuntimeError for a net that has no plan."""
        if not isinstance(net, Net): raise TypeError(f"Workspace.forward takes a Net, got {described(net)}")
        with self._used("forward", net, state_of(net).lock):
            end = next((k for k, o in enumerate(net.operators) if o.is_gradient), len(net.operators))
            blobs = self._inputs(net, "forward")
            made = written(net.operators[:end]) - {*net.bindings} - {*blobs}
            values = dense(blobs, blobs)
            program = self._program(net, values, net.kept if clear_no_need_grad else net.kept | made, end)
            if program is None:
                why = eager_only(net) or "an operator calls a Python function or needs values"
                raise RuntimeError(f"Workspace.forward: net {cut(net.name)} has no plan, because {why}; use run()")
            self._begun.pop(id(net), None)
            now, _ = self._run(net, program, values, program.begin, *values.values())
            self._own.difference_update(now)        # (backward() reads inputs as they were)
            self._set_results(now, values, program, written(net.operators))
            blobs = {name: self._blobs[name] for name in (*blobs, *now)}
            inputs = [*[(name, blobs[name]) for name in values], *net.bindings.items()]
            versions = [(name, x, x.version, checksum_of(x)) for name, x in inputs]
            self._begun[id(net)] = ForwardRun(ref(net), net.edits, program, values, versions,
                                              {**dict.fromkeys(made), **blobs}, made.intersection(now) - net.kept)

    def backward(self, net: Net, clear_buffer: bool = False) -> None:
        """Run the rest of the operators after forward(): backward passes and what follows them. It can be called
        several times, if it does not change variables. With clear_buffer, the blobs that only forward() keeps have no
        values afterwards; the workspace keeps their memory for the next forward(). Raises RuntimeError if forward() did
        not come first, if its values were cleared, or if a blob or a variable was written since."""
        if not isinstance(net, Net): raise TypeError(f"Workspace.backward takes a Net, got {described(net)}")
        with self._used("backward", net, state_of(net).lock):
            begun = self._begun.get(id(net))
            if begun is None or begun.net() is not net or begun.edits != net.edits:
                raise RuntimeError(f"Workspace.backward: the values that it reads do not exist: call forward() of net "
                                   f"{cut(net.name)} first, also after a backward() with clear_buffer=True")
            changed = [name for name, x, version, elements in begun.versions
                       if x.version != version or checksum_of(x) != elements]
            changed += [name for name, x in begun.blobs.items() if self._blobs.get(name) is not x]
            if changed:
                raise RuntimeError(f"Workspace.backward: {described(changed[0])} was written after forward() of net "
                                   f"{cut(net.name)}; call forward() again")
            found = begun.program.difference(True)
            if found:
                raise RuntimeError(f"Workspace.backward: {found}, which a plan of net {cut(net.name)} does not follow; "
                                   f"call forward() again, or use run()")
            _, last = self._run(net, begun.program, begun.values, begun.program.resume)
            rest = written(net.operators) - (begun.blobs.keys() - last.keys())
            results = {name: y for name, y in last.items() if name in rest}
            self._set_results(results, begun.values, begun.program, rest)
            begun.blobs.update({name: y for name, y in results.items() if name not in begun.values})
            if not clear_buffer: return
            del self._begun[id(net)]
            for name in begun.forgets: self._forget(name)

    def _forget(self, name: str) -> None:
        self._changes += 1
        self._blobs.pop(name, None)
        self._own.discard(name)
        self._made.pop(name, None)

    def _run_watched(self, net: Net, before: Hook | None, after: Hook | None, kept: frozenset[str]) -> None:
        """Run a net with hooks."""
        for f, what in ((before, "before"), (after, "after")):
            if f is not None and not callable(f):
                raise TypeError(f"Workspace.run: {what} must be a function or None, got {described(f)}")
        values = self._inputs(net, "run")
        found = self._interpreted(net, values, kept, Hooks(net.operators, before, after))
        self._set_results(found, values, None, written(net.operators))
        self._ready.pop(id(net), None)

    def _is_ready(self, ready: Ready, net: Net, edits: int, key: Any) -> bool:
        """Whether nothing has changed since the program of a net ran on these blobs."""
        if ready.net() is not net or ready.edits != edits or ready.program.difference(): return False
        if not self._fits(ready.program): return False
        if ready.changes == self._changes: return True
        for name, x in ready.blobs:
            if self._blobs.get(name) is not x: return False
        if not ready.others.isdisjoint(self._blobs): return False
        self._ready[key] = ready._replace(changes=self._changes)
        return True

    def _run_anew(self, net: Net, keep: tuple[str, ...], key: Any) -> None:
        """Run a net whose program, or some of whose blobs, may be other ones than in its last run."""
        made = written(net.operators)
        values = dense(self._inputs(net, "run"), made)      # (a program writes only to dense inputs)
        kept = net.kept | (made.intersection(keep) - {*net.bindings})
        program = self._program(net, values, kept)
        found = self._interpreted(net, values, kept) if program is None else self._run(
            net, program, values, program.run, *values.values())
        self._set_results(found, values, program, made)
        self._ready.pop(key, None)
        if program is None or not all(is_dense(x) for x in values.values()): return
        rewritten = [(self._blobs[name], y) for name, y in found.items() if name in values]
        blobs = [(name, self._blobs[name]) for name in (*values, *found)]
        if all(self._blobs[name] is x for name, x in values.items()):
            others = frozenset(made | {*net.bindings}) - {*values, *found}
            self._ready[key] = Ready(ref(net), net.edits, program, values, rewritten, blobs, others, self._changes)

    def _set_results(self, found: Mapping[str, Tensor], values: Values, program: Program | None,
                     made: Collection[str]) -> None:
        """Set the blobs that a run has found; `values` are its inputs. Others that it has `made` have no values."""
        for name in made:
            if name not in found and name not in values and name in self._blobs: self._forget(name)
        for name, y in found.items():
            if name in values: self._set(name, y)   # (an input stays where the program reads it)
            else:
                self._changes += 1
                self._blobs[name] = y
                self._own.discard(name)
                if program is None: self._made.pop(name, None)
                else: self._made[name] = program

    def _interpreted(self, net: Net, values: Values, kept: frozenset[str], hooks: Hooks | None = None) -> dict[str,
                                                                                                              Any]:
        """Run a net without a program. Results that are views of inputs are copied."""
        if self._budget is not None: self._release([p for _, ps in self._programs.values() for p in ps or ()], values)
        with unscoped():
            with mode(net), nullcontext() if self._budget is None else budget(self._budget):
                found = Run(net, values, kept, hooks).execute()
            inputs = [x.numpy() for x in values.values()]
            return {name: tensor(y) if any(np.may_share_memory(y.numpy(), x) for x in inputs) else y
                    for name, y in found.items()}

    def _run(self, net: Net, program: Program, values: Values, method: Callable[..., Any],
             *given: Tensor) -> Any:
        """Run the program of a net, or a part of it, by one of its methods. If it fails, its results have no values,
        because their memory was written."""
        try: return method(*given)
        except BaseException as e:
            for name in [name for name, made in self._made.items() if made is program]:
                self._forget(name)
            self._begun.pop(id(net), None)
            if isinstance(e, Exception):
                at = program.failed_at
                if at is not None: e.add_note(progress(net, at, {**net.constants, **values}))
            raise

    def _inputs(self, net: Net, who: str) -> Values:
        """The values of the inputs of a net."""
        variables = state_of(net).variables
        for name, x in net.bindings.items():
            if x.requires_grad != (name in variables):
                now, before = ("a variable", "none") if x.requires_grad else ("no variable", "one")
                raise RuntimeError(f"Workspace.{who}: {described(str(name))}, a tensor outside of net {cut(net.name)}, "
                                   f"is {now} and was {before} at the capture; change it back, or capture again")
            if name in self._blobs:
                raise ValueError(f"Workspace.{who}: net {cut(net.name)} binds {described(str(name))} to a tensor "
                                 f"outside, so it does not use the value in this workspace; write to that tensor with "
                                 f"copy_(), and free() the blob")
        for name in net.inputs:
            if name not in self._blobs:
                raise ValueError(f"Workspace.{who}: the input {described(str(name))} of net {cut(net.name)} has no "
                                 f"value; feed it first; the inputs are {', '.join(net.inputs)}")
        absent = [name for name in net.absent if name in self._blobs]
        return {str(name): self._blobs[name] for name in dict.fromkeys((*net.inputs, *absent))}

    def _fits(self, program: Program) -> bool:
        """Whether a run of a program stays within the budget."""
        return self._budget is None or stats()["live_bytes"] + sum(program.missing) <= self._budget

    def _planned(self, net: Net, inputs: Any, kept: frozenset[str], split: int | None, values: Values,
                 programs: list[Program]) -> tuple[Program, list[Program]]:
        """A program, and under a budget those whose memory it needs: none, those that it replaces, or all. Memory in
        which inputs are stays."""
        if self._budget is None: return prepared(net, inputs, kept, split), []
        fixed = [self._made[name] for name in values if name in self._made]
        own = [p for p in programs if p.held_bytes and p not in fixed]
        others = [p for _, found in self._programs.values() for p in found or () if p.held_bytes and p not in fixed]
        try: return prepared(net, inputs, kept, split, self._budget + sum(p.held_bytes for p in own)), own
        except MemoryLimitError:
            if len(others) == len(own): raise
        return prepared(net, inputs, kept, split, self._budget + sum(p.held_bytes for p in others)), others

    def _release(self, programs: Collection[Program], values: Values) -> None:
        """Give back the memory of programs. Blobs in it, but for the inputs `values`, have no values any more."""
        for name in [name for name, made in self._made.items() if made in programs and name not in values]:
            self._forget(name)
        self._programs = {key: (net, found if found is None else [p for p in found if p not in programs])
                          for key, (net, found) in self._programs.items()}
        self._ready = {key: ready for key, ready in self._ready.items() if ready.program not in programs}
        self._begun = {key: begun for key, begun in self._begun.items() if begun.program not in programs}

    def _program(self, net: Net, values: Values, kept: frozenset[str], split: int | None = None) -> Program | None:
        """A program of a net for inputs of the shapes of `values` and for what is around now; None if only eager code
        can run it now, or an operator calls Python functions, or does something else that a program would not repeat.
        """
        if eager_only(net): return None
        inputs = {name: (x.shape, np.dtype(x.dtype).name) for name, x in values.items()}
        key = id(net), net.edits, tuple(inputs.items()), kept, split
        known, programs = self._programs.get(key), list[Program]()
        if known is not None and known[0]() is net:
            if known[1] is None: return None
            programs = known[1]
            for program in programs:
                if not program.difference() and self._fits(program): return program
        made, replaced = None, list[Program]()
        if not any(map(is_python, net.operators)):
            try: made, replaced = self._planned(net, inputs, kept, split, values, programs)
            except RuntimeError as e:
                if not str(e).startswith(CAPTURE): raise
        if replaced: self._release(replaced, values)
        self._programs = {k: known for k, known in self._programs.items() if is_current(known[0](), k[1], net)}
        self._ready = {k: ready for k, ready in self._ready.items() if is_current(ready.net(), ready.edits, net)}
        self._begun = {k: begun for k, begun in self._begun.items() if is_current(begun.net(), begun.edits, net)}
        programs = [p for p in programs if p not in replaced]
        self._programs[key] = ref(net), None if made is None else [*programs[1 - KEPT:], made]
        return made


NetState.new_workspace = Workspace
