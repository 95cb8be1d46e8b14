# Written by tools/make_stubs.py; do not edit.
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import Part
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Diagonal(Attributes):
    @property
    def k(self) -> Any: ...
class Join(Operator):
    pass
@disjoint_base
class Margins(Attributes):
    def arguments(self) -> Any: ...
    @property
    def widths(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
@final
class Pad(Operator):
    pass
@disjoint_base
class Parts(Attributes):
    def arguments(self) -> Any: ...
    @property
    def axis(self) -> Any: ...
    @property
    def starts(self) -> Any: ...
@disjoint_base
class Section(Attributes):
    @property
    def axis(self) -> Any: ...
    @property
    def start(self) -> Any: ...
    @property
    def count(self) -> Any: ...
@disjoint_base
class Triangle(Operator):
    pass
@final
class Concat(Join):
    pass
@final
class Stack(Join):
    pass
@final
class TriL(Triangle):
    pass
@final
class TriU(Triangle):
    pass
@final
class Split(Part):
    pass
def concat(xs: Iterable[_Data], axis: int | None = 0) -> Tensor: ...
def pad(x: _Data, widths: int | Sequence[int] | Sequence[Sequence[int]], mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap'] = 'constant', value: float = 0) -> Tensor: ...
def split(x: _Data, sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]: ...
def split_part(x: _Data, axis: int, start: int, count: int) -> Tensor: ...
def stack(xs: Iterable[_Data], axis: int = 0) -> Tensor: ...
def tril(x: _Data, k: int = 0) -> Tensor: ...
def triu(x: _Data, k: int = 0) -> Tensor: ...
