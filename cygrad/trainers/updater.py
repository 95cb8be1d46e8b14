"""Updater: one update of the parameters, with callbacks between its stages."""

from __future__ import annotations                  # so that help() shows Callbacks by its name

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator
from cygrad.core.graph.tensor import Tensor
from cygrad.optim.fusing import refuse_fused
from cygrad.optim.settings import instance
from cygrad.trainers.nans import has_nan, raise_nan
from cygrad.trainers.passes import Callbacks, Passes, functions, new_collection

POINTS = tuple(f"{stage}_callback_on_{end}" for stage in ("forward", "backward", "comm", "update")
               for end in ("start", "finish"))


class Updater(Passes):
    """update(i) runs one update:

        solver.zero_grad()
        accum_grad times:  data_feeder(), forward pass, backward pass
        with comm and grads:  comm.all_reduce(gradients, division=False, inplace=False)
        solver.update()

    Callbacks run before (`_on_start`) and after (`_on_finish`) each of forward, backward, comm and update. Each of the
    eight arguments is one function or an iterable of functions, which are called in order with `i`.

    solver: has zero_grad() and update(), as the solvers of cygrad.optim have. loss: a function that returns the loss, a
    tensor of any shape whose elements are summed (the head gradient is ones). It is called in record(), with the result
    of data_feeder() as its arguments: a tuple is unpacked, None and True pass nothing, anything else is one argument.
    It can be the head of a captured net, net.head(); the arguments are then the values of the inputs in their order.
    clear_buffer=False keeps the graph after backward (retain_graph=True). accum_grad: the number of passes whose
    gradients are summed, not averaged; divide the loss for a mean. The sum does not depend on grad_req: "write" starts
    with the first pass, "add" with what .grad has; the solver's parameters start with zeros. comm: sums over processes.
    grads: the variables, or the gradient tensors, that it sums, each of them once; a parameter that no pass of any
    process reached remains unreached. Only a Communicator sums a GradientSlice, and all ranks must have one then.
    comm_callback: instead of comm and grads, a scope that sums the gradients while backward runs,
    comm.all_reduce_callback(variables, pack_size). It is open during the last backward pass alone, and the callbacks of
    comm run before and after it:

        backward_on_start, comm_on_start, with comm_callback: backward, comm_on_finish, backward_on_finish

    `last_loss` is the loss of the last forward pass, detached from its graph, so that a callback can read it.

    An exception in any stage reaches the caller as itself, with a note that names the stage. The gradients of the
    solver's parameters are then zeros and the graph is freed, so the next update is not affected.

    Raises TypeError or ValueError for wrong arguments. update() raises TypeError if `loss` returns something other than
    a tensor or if comm, which is no Communicator, would sum a GradientSlice, ValueError if comm would sum memory twice,
    RuntimeError if the loss depends on no variable.
    """

    def __init__(
        self, solver: Any, loss: Callable[..., Tensor], data_feeder: Callable[[], Any] | None = None, *,
        forward_callback_on_start: Callbacks = (), forward_callback_on_finish: Callbacks = (),
        backward_callback_on_start: Callbacks = (), backward_callback_on_finish: Callbacks = (),
        comm_callback_on_start: Callbacks = (), comm_callback_on_finish: Callbacks = (),
        update_callback_on_start: Callbacks = (), update_callback_on_finish: Callbacks = (),
        clear_buffer: bool = True, accum_grad: int = 1, comm: Any = None, grads: Iterable[Tensor] = (),
        comm_callback: Any = None,
    ):
        super().__init__(solver, loss, data_feeder, clear_buffer, accum_grad, comm, grads)
        self.comm_callback = self._scope(comm_callback)
        given = (
            forward_callback_on_start, forward_callback_on_finish, backward_callback_on_start,
            backward_callback_on_finish, comm_callback_on_start, comm_callback_on_finish, update_callback_on_start,
            update_callback_on_finish,
        )
        for point, f in zip(POINTS, given, strict=True): setattr(self, point, functions(self._name, point, f))

    def _entries(self):
        return {} if self.comm_callback is None else {"comm_callback": type(self.comm_callback)}

    def _scope(self, scope):
        """comm_callback, checked."""
        if scope is None: return None
        instance(self._name, "comm_callback", scope)
        if not hasattr(scope, "__enter__") or not hasattr(scope, "__exit__"):
            raise TypeError(f"{self._name}: comm_callback must be a scope, as comm.all_reduce_callback() returns, got "
                            f"{described(scope)}")
        if self.comm is not None:
            raise ValueError(f"{self._name}: comm_callback takes the place of comm and grads, which would sum the "
                             f"gradients once more; pass one of them")
        return scope

    def update(self, i: int) -> None:
        """Run update number `i`, which the callbacks receive."""
        if self.comm is not None or self.comm_callback is not None or self.checks_nan:
            refuse_fused(self.solver, self._name)
        collected = new_collection()
        where, part = "zero_grad", 0                # the stage and the pass, for the note of an exception
        batch = y = None

        def call(point):
            nonlocal where
            where = point
            for f in getattr(self, point): f(i)

        try:
            self.solver.zero_grad()
            with self._sums():
                for k in range(self.accum_grad):
                    where, part = "data_feeder", k + 1
                    batch = self._feed()
                    call("forward_callback_on_start")
                    where = "loss"
                    state = default_generator.state
                    y = self._forward(batch)
                    if self.checks_nan: self._check_nan("the loss", has_nan(self.last_loss), batch, state)
                    else: batch = None                  # backward does not hold what it did not save
                    call("forward_callback_on_finish")
                    call("backward_callback_on_start")
                    if self.comm_callback is not None and k == self.accum_grad - 1:
                        call("comm_callback_on_start")
                        where = "backward"
                        with self.comm_callback:
                            self._backward(y, collected)
                            y = None
                        call("comm_callback_on_finish")
                    else:
                        where = "backward"
                        self._backward(y, collected)
                        y = None
                    if self.checks_nan and hasattr(self.solver, "check_nan_grad"):
                        self._check_nan("a gradient", self.solver.check_nan_grad(), batch, state)
                    batch = None
                    call("backward_callback_on_finish")
            part = 0
            if self.comm is not None and self.grads:
                call("comm_callback_on_start")
                where = "all_reduce"
                self._reduce()
                call("comm_callback_on_finish")
            call("update_callback_on_start")
            where = "solver.update"
            self.solver.update()
            call("update_callback_on_finish")
        except BaseException as error:
            batch = y = None                        # the traceback must not hold the graph
            passes = f", in pass {part} of {self.accum_grad}" if part and self.accum_grad > 1 else ""
            updated = ", after the parameters were updated" if where == "update_callback_on_finish" else ""
            self._restore(error, where + passes + updated)
            raise

    def _sums(self):
        """The scope of the passes of an update."""
        fused = getattr(self.solver, "fused", None)
        return fused.accumulate() if fused is not None and self.accum_grad > 1 else nullcontext()

    def _check_nan(self, what, found, batch, state):
        """Raise FloatingPointError if a NaN was found."""
        if not found: return
        parameters = dict(self._parameters().values())
        raise_nan(f"{self._name}.update", what, self.loss, batch, state, parameters)
