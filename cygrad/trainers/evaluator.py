"""Evaluator: the mean of values over batches that are not trained on."""

from __future__ import annotations                  # so that help() shows Callbacks by its name

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from cygrad.autograd import pause
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor
from cygrad.optim.settings import count, instance, runs, shown
from cygrad.trainers.passes import check_feeder, check_settings, feed, functions, length_of

Root: TypeAlias = Callable[..., Any]
Callbacks: TypeAlias = Callable[[Any, Any], object] | Iterable[Callable[[Any, Any], object]]


class Evaluator:
    """evaluate(i) computes the means of values over `val_iter` batches, in predict mode and without recording:

        callback_on_start(i, 0.0), for each root
        val_iter times:  data_feeder(), then each root of `vroot`
        callback_on_finish(i, mean), for each root

    vroot: what is evaluated, or a list of several: a function that is called with what data_feeder() returned (a tuple
    is unpacked, None and True pass nothing) and returns a number or a tensor, or a blob of a captured net,
    net.head(blob), whose inputs get these values. Capture a net with dropout or running statistics in predict mode. A
    tensor of one element counts as a number; of others the mean has their shape. val_iter: the number of batches (None:
    the length of the loader whose next() is the data_feeder).
    callback_on_start, callback_on_finish: a function, or as many as roots. clear_buffer is nnabla's; without a graph
    there is nothing to clear. comm: means are over the batches of all processes. names: the names of the roots in the
    history of a Trainer (None: those of the functions).

    `values` has the means of the last evaluation, by name. Raises TypeError or ValueError for wrong arguments."""

    def __init__(
        self, vroot: Root | list[Root] | None = None, data_feeder: Callable[[], Any] | None = None,
        val_iter: int | None = None, callback_on_start: Callbacks = (), callback_on_finish: Callbacks = (),
        clear_buffer: bool = True, comm: Any = None, *, names: Iterable[str] | None = None,
    ):
        self._name = type(self).__name__
        self.vroot = self._roots(vroot)
        self.data_feeder = check_feeder(self._name, data_feeder)
        length = length_of(data_feeder)
        if val_iter is None and length is None:
            raise ValueError(f"{self._name}: val_iter, the number of batches, is missing; pass it, or the next() of a "
                             f"DataLoader as data_feeder")
        self.val_iter = count(self._name, "val_iter", length if val_iter is None else val_iter)
        self.callback_on_start = self._callbacks("callback_on_start", callback_on_start)
        self.callback_on_finish = self._callbacks("callback_on_finish", callback_on_finish)
        check_settings(self._name, clear_buffer, comm)
        self.clear_buffer, self.comm = clear_buffer, comm
        self.names = self._named(names)
        self.values: dict[str, Any] = {}

    def __repr__(self) -> str:
        return shown(self, {"roots": list(self.names), "val_iter": self.val_iter})

    def _roots(self, vroot: Any) -> tuple[Root, ...]:
        roots = tuple(vroot) if isinstance(vroot, (list, tuple)) else (vroot,)
        if not roots: raise ValueError(f"{self._name}: vroot is empty; pass a function, or a list of functions")
        for k, root in enumerate(roots):
            where = f"vroot[{k}]" if len(roots) > 1 else "vroot"
            instance(self._name, where, root)
            runs(self._name, where, root)
            if isinstance(root, Tensor) or not callable(root):
                name = f"; pass net.head({described(str(root))})" if isinstance(root, str) else ""
                raise TypeError(f"{self._name}: {where} must be a function of a batch that returns a value, or the "
                                f"head of a net, got {described(root)}{name}")
            if isinstance(kind := getattr(root, "training_operator", None), str):
                raise ValueError(f"{self._name}: {where} is the head of a net that was captured in train mode, in "
                                 f"which {kind} acts as in training; capture the net of the evaluation in "
                                 f"predict_mode()")
        return roots

    def _callbacks(self, point: str, given: Any) -> tuple[Callable[[Any, Any], object], ...]:
        """A function for each root, or none."""
        found = functions(self._name, point, given, "a function of i and a value")
        if found and len(found) != len(self.vroot):
            raise ValueError(f"{self._name}: {point} has {len(found)} functions for {len(self.vroot)} roots; pass one "
                             f"for each, in their order")
        return found

    def _named(self, names: Iterable[str] | None) -> tuple[str, ...]:
        if names is not None:
            found = (names,) if isinstance(names, str) else tuple(names)
            if not all(isinstance(name, str) for name in found) or len({*found}) != len(self.vroot):
                raise ValueError(f"{self._name}: names must be {len(self.vroot)} different strings, one for each root, "
                                 f"got {described(list(found))}")
            return found
        own = [str(root) if isinstance(root, str) else getattr(root, "__name__", "<lambda>") for root in self.vroot]
        known: list[str] = []
        for name in own:
            if not name.isidentifier(): name = "value"
            k = 1
            while (unique := name if k == 1 else f"{name}_{k}") in known: k += 1
            known.append(unique)
        return tuple(known)

    def evaluate(self, i: int) -> Any:
        """Evaluate, and return the mean of the root, or a list with that of each. `i`, such as the number of the
        iteration, goes to the callbacks. Raises TypeError if a root returns no number or tensor."""
        for f in self.callback_on_start: f(i, 0.0)
        sums: list[Any] = [0.0] * len(self.vroot)
        with pause(train_mode=False):
            for _ in range(self.val_iter):
                batch = feed(self.data_feeder)
                for k, root in enumerate(self.vroot): sums[k] = sums[k] + self._value(k, root(*batch))
                del batch
        means = self._means(sums)
        self.values = dict(zip(self.names, means, strict=True))
        for f, mean in zip(self.callback_on_finish, means, strict=False): f(i, mean)
        return means if len(means) > 1 else means[0]

    def _value(self, k: int, y: Any) -> Any:
        if isinstance(y, Tensor): return y.item() if y.size == 1 else y.detach().numpy().astype("float64")
        if isinstance(y, (int, float, np.number)): return float(y)
        raise TypeError(f"{self._name}: the root {self.names[k]!r} must return a number or a tensor, it returned "
                        f"{described(y)}")

    def _means(self, sums: list[Any]) -> list[Any]:
        """The means over the batches of all processes."""
        batches: Any = float(self.val_iter)
        if self.comm is not None:
            parts = [tensor(np.asarray(s, "float64")) for s in (*sums, batches)]
            self.comm.all_reduce(parts, division=False, inplace=False)
            *sums, batches = (p.item() if p.ndim == 0 else p.numpy() for p in parts)
        return [s / batches for s in sums]
