# Written by tools/make_stubs.py; do not edit.
from typing import Any

def check_size(n: Any, what: Any) -> Any: ...
