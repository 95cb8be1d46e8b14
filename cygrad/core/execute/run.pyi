# Written by tools/make_stubs.py; do not edit.
from typing import Any

def apply(op: Any, *inputs: Any, attributes: Any = None) -> Any: ...
