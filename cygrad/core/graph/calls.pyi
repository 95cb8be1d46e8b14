# Written by tools/make_stubs.py; do not edit.
from typing import Any

def asked() -> Any: ...
