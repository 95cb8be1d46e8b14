"""What the updaters share: their arguments, one forward and backward pass, and the reduction over processes."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds

from cygrad.autograd import backward, record
from cygrad.autograd.variables import keeps_grad
from cygrad.core.backward.deposit import Collected, open_collected
from cygrad.core.errors import described
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros_like
from cygrad.optim.groups import advice
from cygrad.optim.settings import count, instance, refuse_used, runs, shown

Callbacks: TypeAlias = Callable[[Any], object] | Iterable[Callable[[Any], object]]


class Passes:
    """The base of the updaters. `last_loss` is the loss of the last forward pass, detached from its graph, or None
    while one runs. `needs` lists the methods that the solver must have."""

    needs: tuple[str, ...] = ("zero_grad", "update")
    last_loss: Tensor | None
    checks_nan = False          # whether update() raises FloatingPointError at the first NaN; a Trainer sets it

    def __init__(self, solver, loss, data_feeder, clear_buffer, accum_grad, comm, grads):
        self._name = type(self).__name__
        instance(self._name, "solver", solver)
        missing = [method for method in self.needs if not callable(getattr(solver, method, None))]
        if missing:
            raise TypeError(f"{self._name}: solver must have {', '.join(self.needs)}, as the solvers of cygrad.optim "
                            f"have; got {described(solver)} without {', '.join(missing)}")
        check_feeder(self._name, data_feeder)
        check_settings(self._name, clear_buffer, comm)
        self.accum_grad = count(self._name, "accum_grad", accum_grad)
        self.loss = self._forward_of(loss)
        self.solver, self.data_feeder, self.clear_buffer, self.comm = solver, data_feeder, clear_buffer, comm
        self.grads = self._listed(grads)
        self._sources, self._variables = list(self.grads), set()
        self._resolve(self._parameters())
        self._refuse_repeated()
        self.last_loss = None

    def __repr__(self) -> str:
        comm = {} if self.comm is None else {"comm": type(self.comm), "grads": len(self.grads)}
        return shown(self, {"solver": type(self.solver), "accum_grad": self.accum_grad} | self._entries() | comm)

    def _entries(self):
        """What else the repr shows."""
        return {}

    # ---- arguments

    def _forward_of(self, loss):
        """The function that runs the forward pass. The head of a net can be called too."""
        instance(self._name, "loss", loss)
        runs(self._name, "loss", loss)
        if callable(loss) and not isinstance(loss, Tensor): return loss
        if isinstance(loss, str):
            raise TypeError(f"{self._name}: loss must be a function that returns the loss, or the head of a net, got "
                            f"the name {described(str(loss))}; pass net.head({described(str(loss))})")
        raise TypeError(f"{self._name}: loss must be a function that runs the forward pass and returns the loss, got "
                        f"{described(loss)}; operations run immediately, so wrap them in a function of the batch")

    def _listed(self, grads):
        """`grads` as a tuple of tensors: an iterable, the values of a dict, or one tensor."""
        if isinstance(grads, Tensor): return (grads,)
        if hasattr(grads, "items") and not hasattr(grads, "named_parameters"): grads = grads.values()
        if not hasattr(grads, "__iter__") or hasattr(grads, "named_parameters"):
            raise TypeError(f"{self._name}: grads must be a list of variables or gradient tensors, got "
                            f"{described(grads)}{advice(grads)}")
        given, grads = grads, tuple(grads)
        if not grads: refuse_used(self._name, "grads", given)
        for k, x in enumerate(grads):
            if isinstance(x, GradientSlice): self._refuse_slice(k, x, {})
            if not isinstance(x, Tensor):
                raise TypeError(f"{self._name}: grads[{k}] must be a variable or a gradient tensor, got {described(x)}")
        return grads

    def _refuse_repeated(self):
        """Raise ValueError for a variable or gradient that `grads` has twice, since its sum would be added twice."""
        first = {}
        for k, x in enumerate(self._sources):
            j = first.setdefault(id(x), k)
            if j == k: continue
            same = "the same tensor as" if self.grads[j] is self.grads[k] else "a gradient and its variable, like"
            raise ValueError(f"{self._name}: grads[{k}] is {same} grads[{j}]; each gradient is summed once, so list it "
                             f"once")
        self._refuse_overlap([*enumerate(self.grads)])

    def _refuse_overlap(self, tensors):
        """Raise ValueError if two of the pairs (index in grads, tensor) share memory."""
        if len(tensors) < 2: return
        before = []                                 # those whose range of addresses may meet the next
        for (start, end), k, a in sorted(((byte_bounds(a), k, a) for k, x in tensors
                                          if (a := x.detach().numpy()).size), key=lambda entry: entry[:2]):
            before = [entry for entry in before if entry[0] > start]
            for _, j, b in before:
                if np.shares_memory(a, b):
                    raise ValueError(f"{self._name}: grads[{max(j, k)}] shares memory with grads[{min(j, k)}], which "
                                     f"would be summed twice; list one of them, or use a copy()")
            before.append((end, k, a))

    # ---- one pass

    def _feed(self):
        """The arguments of `loss`, from data_feeder()."""
        return feed(self.data_feeder)

    def _forward(self, batch):
        """The loss of a batch, recorded in train mode."""
        self.last_loss = None
        with record(): y = self.loss(*batch)
        if not isinstance(y, Tensor):
            got, y = described(y), None             # the traceback must not hold a graph
            raise TypeError(f"{self._name}: loss must return a tensor, it returned {got}")
        if not y.requires_grad:
            raise RuntimeError(f"{self._name}: the loss, of shape {y.shape}, does not depend on a variable; compute it "
                               f"from the parameters, without detach() or no_grad()")
        self.last_loss = y.detach()
        return y

    def _backward(self, y, collected, gradient=None):
        """Add the gradients of `y`. `collected` is one Collected(True) for all passes of an update."""
        outer = open_collected(collected)
        try:
            backward(y, gradient, retain_graph=not self.clear_buffer)
        finally:
            open_collected(outer)
            y = None                                # the traceback of an error must not hold a graph

    # ---- processes

    def _parameters(self):
        """(name, parameter) by the id of each parameter of the solver."""
        get = getattr(self.solver, "get_parameters", None)
        return {} if get is None else {id(x): (name, x) for name, x in get().items()}

    def _resolve(self, parameters):
        """Replace the gradient tensors in grads by the parameters whose .grad they are, since .grad may become another
        tensor, and note which entries are variables, since a variable may be frozen later."""
        variables = [*(x for _, x in parameters.values()), *filter(keeps_grad, self._sources)]
        owners = {id(x.grad): x for x in variables if x.grad is not None}
        for k, x in enumerate(self._sources):
            x = self._sources[k] = owners.get(id(x), x)
            if keeps_grad(x) or id(x) in parameters: self._variables.add(k)

    def _reduce(self):
        """Sum the gradients over the processes. All processes pass the same list, so a parameter that no backward
        reached is in it too, with zeros. It remains unreached, and no decay moves it, unless the sum is not zero: then
        another process has reached it, and this one must update it as well. A gradient that several variables share is
        summed once."""
        parameters, found, unreached = self._parameters(), {}, []
        takes_slices = getattr(self.comm, "takes_slices", False)
        self._resolve(parameters)
        for k, x in enumerate(self._sources):
            g = x
            if k in self._variables:
                if x.grad_req == "null": continue
                g = x.grad
                if g is None: g = zeros_like(x.detach())
                if isinstance(g, GradientSlice) and not takes_slices: self._refuse_slice(k, x, parameters)
            if id(x) in parameters and not x.fresh_grad: unreached.append((x, g))
            found.setdefault(id(g), (k, g))
        self._refuse_overlap([(k, g) for k, g in found.values() if isinstance(g, Tensor)])
        summed = self.comm.all_reduce([g for _, g in found.values()], division=False, inplace=False)
        totals = dict(zip(found, summed, strict=True)) if takes_slices else {}
        for k in self._variables if takes_slices else ():           # (a tensor has its sum in place)
            x, is_fresh = self._sources[k], self._sources[k].fresh_grad
            if not isinstance(x.grad, GradientSlice) or id(x.grad) not in totals: continue
            x.grad = totals[id(x.grad)]
            x.fresh_grad = is_fresh
        for x, g in unreached:
            total = totals.get(id(g), g)
            if not (len(total) if isinstance(total, GradientSlice) else total.detach().numpy().any()): continue
            if x.grad is None: x.grad = g
            x.fresh_grad = True

    def _refuse_slice(self, k, x, parameters):
        named = f", the gradient of {parameters[id(x)][0]!r}," if id(x) in parameters else ""
        raise TypeError(f"{self._name}: grads[{k}]{named} is a GradientSlice, and all_reduce adds tensors; assign its "
                        f"to_dense() in a comm_callback_on_start, or use embedding() with sparse=False")

    # ---- after an exception

    def _restore(self, error, where):
        """Zero the gradients after `error`, which gets a note that says where it was raised."""
        gradients = "the gradients are zeros"
        try: self.solver.zero_grad()
        except Exception as e: gradients = f"zero_grad() failed too, with {type(e).__name__}"
        error.add_note(f"cygrad: in {self._name}.update, at {where}; {gradients}")


def new_collection():
    """What the passes of one update share, for Passes._backward()."""
    return Collected(True)


def check_feeder(owner, data_feeder):
    """A data_feeder, checked."""
    if data_feeder is not None and not callable(data_feeder):
        is_loader = callable(getattr(data_feeder, "next", None))
        raise TypeError(f"{owner}: data_feeder must be a function without arguments that returns a batch, got "
                        f"{described(data_feeder)}; "
                        f"{'pass its next' if is_loader else 'for an iterable, pass iter(batches).__next__'}")
    runs(owner, "data_feeder", data_feeder, "; call it and pass __next__ of the result")
    return data_feeder


def check_settings(owner, clear_buffer, comm):
    """Raise TypeError unless they are a bool, and None or what has all_reduce()."""
    if not isinstance(clear_buffer, bool):
        raise TypeError(f"{owner}: clear_buffer must be True or False, got {described(clear_buffer)}")
    instance(owner, "comm", comm)
    if comm is not None and not callable(getattr(comm, "all_reduce", None)):
        raise TypeError(f"{owner}: comm must have all_reduce(arrays, division=False, inplace=False), got "
                        f"{described(comm)}")


def functions(owner, point, given, wanted="a function of i"):
    """A callback argument, one function or an iterable of functions, as a tuple."""
    if given is None: return ()
    found = (given,) if callable(given) else given
    if not hasattr(found, "__iter__"):
        raise TypeError(f"{owner}: {point} must be {wanted}, or an iterable of functions, got {described(given)}")
    found = tuple(found)
    for k, f in enumerate(found):
        if not callable(f): raise TypeError(f"{owner}: {point}[{k}] must be {wanted}, got {described(f)}")
        runs(owner, point, f)
    return found


def feed(data_feeder):
    """What data_feeder() returned, as a tuple of arguments."""
    batch = None if data_feeder is None else data_feeder()
    if batch is None or batch is True: return ()
    return batch if isinstance(batch, tuple) else (batch,)


def length_of(data_feeder):
    """The number of batches of an epoch, if data_feeder is a method of a loader that has a length; else None."""
    try: return len(getattr(data_feeder, "__self__", None)) if data_feeder is not None else None
    except TypeError: return None


def loader_of(data_feeder):
    """The loader whose next() is data_feeder, if it can be saved; else None."""
    loader = getattr(data_feeder, "__self__", None)
    methods = "next", "state_dict", "load_state_dict"
    return loader if all(callable(getattr(loader, name, None)) for name in methods) else None
