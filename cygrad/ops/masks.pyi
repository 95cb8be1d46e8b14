# Written by tools/make_stubs.py; do not edit.
from typing import Any, final
from cygrad.core.graph.tensor import Operator

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class MaskPut(Operator):
    pass
@final
class Select(Operator):
    pass
def mask_put(x: Any, v: Any, mask: Any) -> Any: ...
def select(x: Any, mask: Any) -> Any: ...
