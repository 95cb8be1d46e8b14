# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.shape import Shape
from cygrad.ops.base import Part
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class ArrayIndex(Attributes):
    def arguments(self) -> Any: ...
    @property
    def slices(self) -> Any: ...
    @property
    def order(self) -> Any: ...
    @property
    def axis(self) -> Any: ...
@final
class Assign(Operator):
    pass
@final
class Put(Operator):
    pass
@final
class PutSlice(Operator):
    pass
@disjoint_base
class Slices(Attributes):
    def arguments(self) -> Any: ...
    @property
    def index(self) -> Any: ...
@disjoint_base
class Region(Shape):
    def arguments(self) -> Any: ...
    @property
    def slices(self) -> Any: ...
@final
class GetItem(Part):
    pass
def assign(x: _Data, v: _Data, index: Any) -> Tensor: ...
def copy_(self: Any, value: _Data) -> Tensor: ...
def fill_(self: Any, value: float) -> Tensor: ...
def getitem(x: _Data, index: Any) -> Tensor: ...
def put(x: _Data, v: _Data, indices: _Data, attributes: Any) -> Tensor: ...
def put_slice(x: _Data, shape: int | Sequence[int], index: Any) -> Tensor: ...
def setitem(x: Any, index: Any, value: Any) -> Any: ...
