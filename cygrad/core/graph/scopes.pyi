# Written by tools/make_stubs.py; do not edit.
from typing import Any, Self, TypeAlias
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
@disjoint_base
class scope:
    def __init__(self, capped: bool = False) -> None: ...
    def __enter__(self) -> Self: ...
    def keep(self, x: _Data) -> Tensor: ...
    def __exit__(self, kind: object = None, value: object = None, traceback: object = None) -> None: ...
