# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable, Iterable
from typing import Any
from cygrad.trainers.passes import Passes

LIMIT: float
TRIES: int
class DynamicLossScalingUpdater(Passes):
    needs: tuple[Any, ...]
    def __init__(self, solver: Any, loss: Callable[..., cygrad.core.graph.tensor.Tensor], data_feeder: Callable[[], Any] | None = None, scale: float = 8.0, scaling_factor: float = 2.0, N: int = 2000, clear_buffer: bool = True, accum_grad: int = 1, weight_decay: float | None = None, comm: Any = None, grads: Iterable[cygrad.core.graph.tensor.Tensor] = ...) -> None: ...
    @property
    def scale(self) -> float: ...
    @scale.setter
    def scale(self, value: float) -> None: ...
    def update(self, i: int | None = None) -> None: ...
