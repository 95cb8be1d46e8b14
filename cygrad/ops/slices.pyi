# Written by tools/make_stubs.py; do not edit.
from typing import Any, final
from cygrad.core.graph.tensor import Operator
from cygrad.ops.base import Part

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class Assign(Operator):
    pass
@final
class Put(Operator):
    pass
@final
class PutSlice(Operator):
    pass
@final
class GetItem(Part):
    pass
def copy_(self: Any, value: Any) -> Any: ...
def fill_(self: Any, value: Any) -> Any: ...
def getitem(x: Any, index: Any) -> Any: ...
def put(x: Any, v: Any, indices: Any, attributes: Any) -> Any: ...
def put_slice(x: Any, shape: Any, index: Any) -> Any: ...
def setitem(x: Any, index: Any, value: Any) -> Any: ...
