# Written by tools/make_stubs.py; do not edit.
from typing import Any

CATEGORY_NAMES: tuple[Any, ...]
def holders(t: Any) -> Any: ...
