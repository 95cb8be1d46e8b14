# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator

DTYPES: tuple[Any, ...]
class ClassLoss(Operator):
    pass
@disjoint_base
class Classes(Attributes):
    @property
    def reduction(self) -> Any: ...
    @property
    def ignore_index(self) -> Any: ...
    @property
    def label_smoothing(self) -> Any: ...
    @property
    def axis(self) -> Any: ...
    @property
    def chunk(self) -> Any: ...
