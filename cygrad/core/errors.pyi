# Written by tools/make_stubs.py; do not edit.
from typing import Any
from cygrad.memory.scopes import limit

MAX_LENGTH: int
class GraphFreedError(RuntimeError):
    pass
class InplaceError(RuntimeError):
    pass
class MemoryLimitError(MemoryError):
    requested: int
    limit: int
    fits: int
    operation: str
    line: str
    def __init__(self, message: str, requested: int = 0, limit: int = 0, fits: int = 0, operation: str = '', line: str = '') -> None: ...
class PrecisionWarning(UserWarning):
    pass
def as_float(value: Any, what: Any) -> Any: ...
def cut(text: Any) -> Any: ...
def described(value: Any) -> Any: ...
def module_of(kind: Any) -> Any: ...
def type_name(value: Any) -> Any: ...
