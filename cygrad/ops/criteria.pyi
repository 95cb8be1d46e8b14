# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator

DTYPES: tuple[Any, ...]
@disjoint_base
class Criterion(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
    variants: tuple[Any, ...]
    second: Any
@disjoint_base
class Settings(Attributes):
    @property
    def reduction(self) -> Any: ...
    @property
    def variant(self) -> Any: ...
    @property
    def numbers(self) -> Any: ...
    @property
    def operands(self) -> Any: ...
@disjoint_base
class Signed(Criterion):
    sign: str
