# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

BY_INDEX: dict[Any, Any]
DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class Einsum(Operator):
    pass
def einsum(equation: str, *operands: _Data) -> Tensor: ...
def free_labels(n: Any) -> Any: ...
def parse(equation: Any, ndims: Any) -> Any: ...
def plan(x: Any, y: Any, z: Any) -> Any: ...
