# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class Dropout(Operator):
    pass
@final
class DropoutIdentity(Operator):
    pass
def dropout(x: _Data, p: float = 0.5, generator: Generator | None = None) -> Tensor: ...
def dropout_identity(x: Any) -> Any: ...
def dropout_with(x: Any, p: Any, key: Any, counter: Any) -> Any: ...
