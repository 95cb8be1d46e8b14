# Written by tools/make_stubs.py; do not edit.
from typing import Any

def blas_info() -> Any: ...
