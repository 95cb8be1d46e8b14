"""DynamicLossScalingUpdater: an update whose backward pass is scaled, so that small gradients do not underflow."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.optim.fusing import refuse_fused
from cygrad.optim.settings import count, number
from cygrad.trainers.passes import Passes, new_collection

TRIES = 100
LIMIT = 2.0**126            # bounds the scale and its inverse: both are normal float32 numbers


class DynamicLossScalingUpdater(Passes):
    """update() runs one update with scaled gradients:

        solver.zero_grad()
        accum_grad times:  data_feeder(), forward pass, backward pass with the head gradient `scale`
        with comm and grads:  comm.all_reduce(gradients, division=False, inplace=False)
        solver.scale_grad(1 / scale)
        solver.weight_decay(weight_decay), if it is given
        solver.update()

    If a gradient is inf or NaN after all_reduce, scale is divided by scaling_factor, the gradients are zeroed, and the
    passes run again on the same batches. After 100 such tries the step is skipped with a RuntimeWarning, and scale is
    as before the update. scale is multiplied by scaling_factor after N updates without a division of scale or a
    skipped step between them; the update that divided it, once its repetition is finite, is the first of the N. scale
    remains between 2**-126 and 2**126, where it and its inverse are normal float32 numbers.

    A further try calls `loss` again and data_feeder not, so the batches of the update are held until it ends. Random
    operators draw new numbers, and running statistics include the batch once per try. If accum_grad is greater than 1,
    data_feeder must return the batches: what it writes elsewhere is overwritten by the next one. Gradients of variables
    that the solver does not have remain scaled.

    `scale` can be read and assigned. state_dict() and load_state_dict() resume a run. The other arguments and errors
    are those of Updater; the solver also needs check_inf_or_nan_grad() and scale_grad(), and weight_decay() if
    weight_decay is given. An exception leaves zeros in the gradients, and scale and the count of updates as before the
    update.
    """

    needs: tuple[str, ...] = ("zero_grad", "update", "check_inf_or_nan_grad", "scale_grad")

    def __init__(
        self, solver: Any, loss: Callable[..., Tensor], data_feeder: Callable[[], Any] | None = None,
        scale: float = 8.0, scaling_factor: float = 2.0, N: int = 2000, clear_buffer: bool = True, accum_grad: int = 1,
        weight_decay: float | None = None, comm: Any = None, grads: Iterable[Tensor] = (),
    ):
        if weight_decay is not None: self.needs = (*self.needs, "weight_decay")
        super().__init__(solver, loss, data_feeder, clear_buffer, accum_grad, comm, grads)
        self.scale = scale
        self.scaling_factor = number(self._name, "scaling_factor", scaling_factor, above=1)
        self.N = count(self._name, "N", N)
        self.weight_decay = None if weight_decay is None else number(self._name, "weight_decay", weight_decay)
        self._clean = 0                             # the count of updates that is compared with N

    def _entries(self):
        decay = {} if self.weight_decay is None else {"weight_decay": self.weight_decay}
        return {"scale": self.scale, "scaling_factor": self.scaling_factor, "N": self.N, **decay}

    @property
    def scale(self) -> float:
        """The head gradient of the next backward pass."""
        return self._scale

    @scale.setter
    def scale(self, value: float):
        self._scale = number(self._name, "scale", value, 1 / LIMIT, LIMIT)

    def state_dict(self) -> dict[str, float]:
        """What the next updates depend on besides the other arguments: scale, scaling_factor, N, and "clean", the
        count of updates that is compared with N. JSON can hold it."""
        return {"scale": self.scale, "scaling_factor": self.scaling_factor, "N": self.N, "clean": self._clean}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Continue from what state_dict() returned: the following scales are those of the saved updater. Raises
        ValueError or TypeError for anything else; then nothing has changed."""
        where = f"{self._name}.load_state_dict"
        keys = ("scale", "scaling_factor", "N", "clean")
        if not isinstance(state, Mapping) or state.keys() != {*keys}:
            raise ValueError(f"{where} takes what state_dict() returned, a dict with {', '.join(keys)}; got "
                             f"{described([*map(str, state)]) if isinstance(state, Mapping) else described(state)}")
        scale = number(where, "scale", state["scale"], 1 / LIMIT, LIMIT)
        factor = number(where, "scaling_factor", state["scaling_factor"], above=1)
        n, clean = count(where, "N", state["N"]), count(where, "clean", state["clean"], 0)
        self._scale, self.scaling_factor, self.N, self._clean = scale, factor, n, clean

    def update(self, i: int | None = None) -> None:
        """Run one update. `i` is ignored; Updater.update() takes it too."""
        refuse_fused(self.solver, self._name)
        before = self._scale, self._clean
        batches: list[Any] = []
        try:
            self.solver.zero_grad()
            finite = self._run_until_finite(batches)
            if finite:
                self.solver.scale_grad(1 / self._scale)
                if self.weight_decay is not None: self.solver.weight_decay(self.weight_decay)
                self.solver.update()
        except BaseException as error:
            batches.clear()                         # the traceback must not hold them
            self._scale, self._clean = before
            self._restore(error, f"scale {before[0]:g}")
            raise
        if not finite:
            last, self._scale = self._scale, before[0]
            warnings.warn(f"{self._name}: a gradient was inf or NaN in {TRIES} tries, down to scale {last:g}; the step "
                          f"was skipped and the scale is {self._scale:g} again; look for inf or NaN in the batch and "
                          f"the parameters", RuntimeWarning, stacklevel=2)
            return
        self._clean += 1
        if self._clean >= self.N:
            self._scale, self._clean = min(self._scale * self.scaling_factor, LIMIT), 0

    def _run_until_finite(self, batches):
        """Run the passes, with smaller scales while a gradient is inf or NaN. Returns False if it still is in the last
        try; the gradients are zeros then."""
        for _ in range(TRIES):
            self._run_passes(batches)
            if not self.solver.check_inf_or_nan_grad(): return True
            self._scale, self._clean = max(self._scale / self.scaling_factor, 1 / LIMIT), 0
            self.solver.zero_grad()
        return False

    def _run_passes(self, batches):
        """Run the passes and the reduction. The first try feeds `batches`, and further tries read them."""
        collected, y = new_collection(), None
        try:
            for k in range(self.accum_grad):
                if k == len(batches): batches.append(self._feed())
                y = self._forward(batches[k])
                self._backward(y, collected, self._scale)
                y = None
        finally:
            y = None                                # the traceback of an error must not hold a graph
        if self.comm is not None and self.grads: self._reduce()
