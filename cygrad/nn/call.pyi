# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class CallBase:
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _hooks: Any
    _mode: bool | None
    _pending: bool
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
def kind_of(x: Any) -> Any: ...
def running_layer() -> Any: ...
