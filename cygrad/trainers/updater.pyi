# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable, Iterable
from typing import Any
from cygrad.trainers.passes import Passes

POINTS: tuple[Any, ...]
class Updater(Passes):
    def __init__(self, solver: Any, loss: Callable[..., cygrad.core.graph.tensor.Tensor], data_feeder: Callable[[], Any] | None = None, *, forward_callback_on_start: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., forward_callback_on_finish: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., backward_callback_on_start: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., backward_callback_on_finish: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., comm_callback_on_start: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., comm_callback_on_finish: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., update_callback_on_start: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., update_callback_on_finish: Callable[[Any], object] | Iterable[Callable[[Any], object]] = ..., clear_buffer: bool = True, accum_grad: int = 1, comm: Any = None, grads: Iterable[cygrad.core.graph.tensor.Tensor] = ...) -> None: ...
    def update(self, i: int) -> None: ...
