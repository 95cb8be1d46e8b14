# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Draw(Attributes):
    @property
    def p(self) -> Any: ...
    @property
    def key(self) -> Any: ...
    @property
    def counter(self) -> Any: ...
@final
class Dropout(Operator):
    pass
@final
class DropoutIdentity(Operator):
    pass
def dropout(x: _Data, p: float = 0.5, generator: Generator | None = None) -> Tensor: ...
def dropout_identity(x: _Data) -> Tensor: ...
def dropout_with(x: _Data, p: float, key: int, counter: int) -> Tensor: ...
