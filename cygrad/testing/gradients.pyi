# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any, Literal
from cygrad.core.graph.tensor import Tensor

def gradcheck(f: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Any, order: int = 1, eps: float = 1e-06, rtol: float = 1e-05, atol: float = 1e-07, seed: int = 0) -> Literal[True]: ...
