# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base
from cygrad.core.graph.tensor import Tensor

DTYPES: tuple[Any, ...]
@disjoint_base
class Import:
    pass
def dlpack_device(self: Any) -> Any: ...
def from_dlpack(x: Any, *, device: str | None = None, copy: bool | None = None) -> Tensor: ...
def to_dlpack(self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any: ...
