# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class AddAt(Operator):
    pass
@final
class Argwhere(Operator):
    pass
@disjoint_base
class Classes(Attributes):
    @property
    def classes(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
class Gathering(Operator):
    pass
@disjoint_base
class Indexed(Attributes):
    def arguments(self) -> Any: ...
    @property
    def axis(self) -> Any: ...
    @property
    def count(self) -> Any: ...
@final
class OneHot(Operator):
    pass
@final
class ScatterAdd(Operator):
    pass
@final
class Take(Operator):
    pass
@final
class Gather(Gathering):
    pass
@final
class GatherRanked(Gathering):
    pass
def add_at(x: _Data, axis: int, v: _Data, *indices: _Data) -> Tensor: ...
def argwhere(x: _Data) -> Tensor: ...
def gather(x: _Data, axis: int, index: _Data) -> Tensor: ...
def gather_ranked(x: Any, axis: Any, index: Any) -> Any: ...
def one_hot(labels: _Data, classes: int, dtype: npt.DTypeLike | None = None) -> Tensor: ...
def scatter_add(x: _Data, axis: int, index: _Data, src: _Data) -> Tensor: ...
def take(x: _Data, indices: _Data, axis: int | None = None) -> Tensor: ...
def take_at(x: _Data, axis: int, *indices: _Data) -> Tensor: ...
