# Written by tools/make_stubs.py; do not edit.
from typing import Any

FIRST: str
RENAMED: tuple[Any, ...]
def composed(function: Any, name: Any = None) -> Any: ...
