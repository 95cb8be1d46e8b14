"""AllReduceScope: sums of gradients over ranks while the backward pass still runs."""

from __future__ import annotations                  # so that help() shows types by their names

import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from cygrad.autograd import pause
from cygrad.comm.arrays import ElementStream, listed, text
from cygrad.comm.sums import GatheredRows, all_reduce_stream, pack_for
from cygrad.core.errors import described
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros
from cygrad.optim.settings import count, number, shown

CALL = "all_reduce_callback"
# What a rank has of a gradient. From 0 on: the rows of its GradientSlice.
UNREACHED, DENSE, STRIDED = -1, -2, -3


class AllReduceScope:
    """A scope around one backward pass, in which the gradients of variables are summed over ranks while the pass still
    runs. Communicator.all_reduce_callback() makes it.

    arrays: the variables, the same list on all ranks. They are sent in packs, which are formed in the reverse order of
    the list, since backward reaches the last layer first. A pack has gradients of one dtype and at most pack_size
    elements; a larger gradient is a pack of its own, which is sent in segments of pack_size. The packs are summed one
    after the other, in an order that is the same on all ranks. Each begins in a second thread as soon as its gradients
    and those of earlier packs are complete. At the end of the scope all are. division: divide by the number of ranks.
    scale_grad: a number that multiplies the sums then.

    What is summed is what .grad has at the end of the pass. Solver.zero_grad() before the first pass makes it the
    gradient of this step, and an Updater opens the scope in the last of its passes. A variable that no rank reached
    remains unreached. One that some rank reached is reached on all afterwards: fresh_grad is True. The sum is a
    GradientSlice if the gradient is one on all ranks that have one, else a tensor.

    If the scope is left by an exception on one rank, the others raise RuntimeError, which names that rank. Gradients
    are partly summed then, so zero them. On entry, all ranks raise ValueError if their arguments differ.

    `reduced` is the number of packs that have been summed in the open scope, or in the last one. `comm` is the
    communicator."""

    def __init__(self, comm: Any, arrays: Iterable[Tensor], pack_size: int, division: bool = False,
                 scale_grad: float | None = None):
        self.comm, self._channel = comm, comm._beside
        self.variables = listed(CALL, "arrays", arrays)
        first: dict[int, int] = {}
        for k, x in enumerate(self.variables):
            check_variable(k, x)
            j = first.setdefault(id(x), k)
            if j != k: raise ValueError(f"{CALL}: arrays[{k}] is the same variable as arrays[{j}]; list it once")
        self.pack_size = count(CALL, "pack_size", pack_size)
        if not isinstance(division, bool):
            raise TypeError(f"{CALL}: division must be True or False, got {described(division)}")
        self.division = division
        self.scale_grad = None if scale_grad is None else number(CALL, "scale_grad", scale_grad, low=-np.inf)
        self.packs = packed(self.variables, self.pack_size)
        self.reduced = 0
        self._changed = threading.Condition()
        self._clear()

    def __repr__(self) -> str:
        entries = {"pack_size": self.pack_size, "division": self.division, "scale_grad": self.scale_grad}
        return shown(self, entries, f"{len(self.variables)} gradients in {len(self.packs)} packs")

    # ---- the scope, in the thread of the pass

    def __enter__(self) -> AllReduceScope:
        error: Exception | None = None
        if self._channel.scope is not None:         # (its thread sends messages, so the ranks cannot compare now)
            raise RuntimeError(f"{CALL}: a scope of this communicator is open already; it takes one backward pass at a "
                               f"time")
        try: self._begin()
        except Exception as e: error = e
        options = [("pack_size", self.pack_size), ("division", self.division), ("scale_grad", self.scale_grad)]
        try:
            self._channel.agree(CALL, [(name, str(v)) for name, v in options], "arrays", map(state, self.variables),
                                error)
            if self._in_thread:
                self._thread = threading.Thread(target=self._run, name="cygrad.comm", daemon=True)
                self._thread.start()
        except BaseException:
            self._close()
            raise
        finally: error = None
        return self

    def _begin(self):
        """Allocate, and register the hooks."""
        self._channel.scope, self._ended, self._error, self._told = self, False, None, None
        self.reduced, self._assigned, self._handles = 0, [], []
        self._fired = [False] * len(self.variables)
        self._left = [len(pack) for pack in self.packs]         # gradients that each pack waits for
        several = self._channel.size > 1
        self._in_thread = several and self._channel.MPI.Query_thread() == self._channel.MPI.THREAD_MULTIPLE
        self._thread = None
        self._space = {}
        for pack in self.packs:
            x = self.variables[pack[0]]
            n = min(self.pack_size, sum(self.variables[k].size for k in pack))
            if x.dtype not in self._space or self._space[x.dtype].n < n:
                self._space[x.dtype] = pack_for(self._channel, n, x.dtype)
        for p, pack in enumerate(self.packs):
            for k in pack:
                x = self.variables[k]
                if x.grad_req == "null": continue               # frozen: no gradient arrives
                self._handles.append(x.register_post_accumulate_grad_hook(partial(self._arrive, k, p)))

    def _arrive(self, k, p, x):
        """The hook: the gradient of variable `k`, which pack `p` has, is complete."""
        if self._fired[k]:
            raise RuntimeError(f"{CALL}: a second backward pass in one scope reached arrays[{k}], of shape {x.shape}, "
                               f"whose sum has begun; open the scope around the last pass only")
        if x.grad is None:
            raise RuntimeError(f"{CALL}: another hook has removed the gradient of arrays[{k}], of shape {x.shape}, "
                               f"before it was summed; sum first")
        if isinstance(x.grad, Tensor) and x.grad.requires_grad:
            raise RuntimeError(f"{CALL}: the gradient of arrays[{k}], of shape {x.shape}, has a graph "
                               f"(create_graph=True), which a sum over ranks would lose; use all_reduce on a detach()")
        self._fired[k] = True
        self._left[p] -= 1
        if not self._left[p]:
            with self._changed: self._changed.notify()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            with self._changed:
                self._ended = True
                self._told = None if error is None else f"{kind.__name__}: {error}"
                self._changed.notify()
            if self._thread is not None: self._thread.join()
            else: self._run()
            if error is not None: return
            if self._error is not None: raise self._error
            for x, g in self._assigned: assign(x, g)
        finally:
            error = None
            self._close()

    def _close(self):
        for handle in self._handles: handle.remove()
        self._channel.scope = None
        self._clear()

    def _clear(self):
        self._error, self._handles, self._assigned, self._space = None, [], [], {}

    # ---- the sums, in the second thread

    def _run(self):
        """Sum the packs, then learn whether all ranks have ended well."""
        try:
            with self._channel.lock, pause(train_mode=None):
                self._channel.check()
                for p, pack in enumerate(self.packs):
                    with self._changed:
                        while self._left[p] and not self._ended: self._changed.wait()
                    if not self._reduce(pack): return
                    self.reduced += 1
                with self._changed:
                    while not self._ended: self._changed.wait()
                self._table([])
        except BaseException as e:                  # __exit__ raises it
            self._error = e
            if self._channel.left is None: self._channel.left = ()      # other ranks may wait for this one

    def _table(self, codes, error=None):
        """The codes of all ranks, or None if one of them has failed; then self._error says how."""
        told = f"{type(error).__name__}: {error}" if error is not None else self._told
        table = self._channel.gather(np.array([told is not None, *codes], np.int64))
        if not table[:, 0].any(): return table[:, 1:]
        texts = self._channel.texts(told or "")
        rank = int(table[:, 0].argmax())
        self._error = error if error is not None else RuntimeError(
            f"{CALL}: rank {rank} raised {texts[rank]} in its scope; the gradients are partly summed, so zero them "
            f"before the next pass")
        return None

    def _reduce(self, pack):
        """Sum the gradients of a pack. Returns False if a rank has failed."""
        variables = [self.variables[k] for k in pack]
        reached = [self._fired[k] or (self._ended and x.fresh_grad) for k, x in zip(pack, variables, strict=True)]
        own = [x.grad if has else None for x, has in zip(variables, reached, strict=True)]
        table = self._table([code(g) for g in own])
        if table is None: return False
        dense = [k for k, column in enumerate(table.T) if (column <= DENSE).any()]
        sparse = [k for k, column in enumerate(table.T) if k not in dense and (column != UNREACHED).any()]
        stream, rows, new, error = None, [], {}, None
        try:                                        # what may fail for lack of memory
            if dense: stream = self._stream(variables, own, dense, new)
            rows = [GatheredRows(own[k], np.maximum(table[:, k], 0), variables[k].shape,
                         (variables[k].shape, variables[k].dtype)) for k in sparse]
        except Exception as e: error = e
        try:
            if not (table == DENSE).all() and self._table([], error) is None: return False
        finally: error = None                       # (it refers to this frame)
        divisor = self._channel.size if self.division else 1
        if stream is not None and (self._channel.size > 1 or self.scale_grad is not None):
            all_reduce_stream(self._channel, stream, self._space[variables[0].dtype], divisor, self.scale_grad)
            stream.close()
        for k, r in zip(sparse, rows, strict=True):
            r.join(self._channel)
            new[k] = r.total(divisor, self.scale_grad)
        self._assigned += [(variables[k], new.get(k)) for k in (*dense, *sparse)]
        return True

    def _stream(self, variables, own, dense, new):
        """The gradients `dense` of a pack. Those that are not in a .grad of this rank, as a tensor, are added to `new`.
        """
        for k in dense:
            if isinstance(own[k], GradientSlice): new[k] = own[k].to_dense()
            elif own[k] is None: new[k] = zeros(variables[k].shape, dtype=variables[k].dtype)
        return ElementStream([new.get(k, own[k]) for k in dense])


def check_variable(k, x):
    """Raise TypeError or ValueError unless arrays[k] can have a gradient."""
    if not isinstance(x, Tensor): raise TypeError(f"{CALL}: arrays[{k}] must be a variable, got {described(x)}")
    if x.dtype.kind != "f" or not x.is_leaf:
        what = f"{x.dtype}" if x.is_leaf else "the result of a recorded operation"
        raise ValueError(f"{CALL}: arrays[{k}], of shape {x.shape}, is {what}; the arrays are variables, whose .grad "
                         f"is summed")


def state(x):
    """What must be equal on all ranks."""
    return text(x) + (", frozen" if x.grad_req == "null" else "")


def packed(variables, size):
    """The packs, as lists of indices: of one dtype and at most `size` elements, in the reverse order of the list."""
    packs, room = [], 0
    for k in reversed(range(len(variables))):
        x = variables[k]
        if not packs or x.size > room or x.dtype != variables[packs[-1][0]].dtype:
            packs.append([])
            room = size
        packs[-1].append(k)
        room -= x.size
    return packs


def code(g):
    """What this rank has of a gradient, for the other ranks."""
    if g is None: return UNREACHED
    if isinstance(g, GradientSlice): return len(g)
    return DENSE if g.detach().numpy().flags.c_contiguous else STRIDED


def assign(x, g):
    """Make the sum `g` the gradient of `x`; None: .grad has it. A tensor in .grad stays the same tensor."""
    if isinstance(x.grad, Tensor) and isinstance(g, Tensor) and not x.grad.requires_grad:
        with pause(train_mode=None): x.grad.copy_(g)
    elif g is not None: x.grad = g
    x.fresh_grad = True
