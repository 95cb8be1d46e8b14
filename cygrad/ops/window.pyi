# Written by tools/make_stubs.py; do not edit.
from typing import Any, final
from cygrad.core.graph.tensor import Operator

OPERATORS: dict[Any, Any]
@final
class AsView(Operator):
    pass
@final
class PutView(Operator):
    pass
def as_view(x: Any, shape: Any, strides: Any, offset: Any = 0) -> Any: ...
def put_view(x: Any, v: Any, strides: Any, offset: Any = 0) -> Any: ...
