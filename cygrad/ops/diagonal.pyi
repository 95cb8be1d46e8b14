# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class Diag(Operator):
    pass
@final
class Diagonal(Operator):
    pass
@disjoint_base
class Line(Attributes):
    def arguments(self) -> Any: ...
    @property
    def axis1(self) -> Any: ...
    @property
    def axis2(self) -> Any: ...
    @property
    def offset(self) -> Any: ...
    @property
    def shape(self) -> Any: ...
def diag(x: _Data, k: int = 0) -> Tensor: ...
def diagonal(x: _Data, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
def put_diagonal(x: _Data, shape: int | Sequence[int], offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
def trace(x: _Data, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
