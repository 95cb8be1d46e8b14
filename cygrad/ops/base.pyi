# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
TO_FLOATS: str
@disjoint_base
class Axis(Attributes):
    @property
    def axis(self) -> Any: ...
@disjoint_base
class Code(Attributes):
    @property
    def code(self) -> Any: ...
    @property
    def bits(self) -> Any: ...
    @property
    def shape(self) -> Any: ...
@disjoint_base
class Elementwise(Operator):
    inputs: str
    number: bool
    integers: Any
    code: str
    bits: int
@final
class HasCode(Operator):
    pass
@disjoint_base
class Number(Attributes):
    @property
    def number(self) -> Any: ...
class View(Operator):
    pass
class Part(View):
    pass
class Truth(Elementwise):
    pass
def code_is(x: _Data, code: int, bits: int, shape: int | Sequence[int]) -> Tensor: ...
