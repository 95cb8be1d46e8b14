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
@disjoint_base
class Contraction(Attributes):
    @property
    def x(self) -> Any: ...
    @property
    def y(self) -> Any: ...
    @property
    def z(self) -> Any: ...
@final
class Einsum(Operator):
    pass
def einsum(equation: str, *operands: _Data) -> Tensor: ...
def free_labels(n: Any) -> Any: ...
def parse(equation: Any, ndims: Any) -> Any: ...
def path_of(terms: Any, result: Any, sizes: Any) -> Any: ...
def plan(*args: Any, **kwargs: Any) -> Any: ...
