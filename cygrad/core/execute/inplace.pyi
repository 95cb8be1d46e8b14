# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

DTYPES: tuple[Any, ...]
@disjoint_base
class writes_into:
    def __init__(self, x: Any) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, kind: object = None, value: object = None, traceback: object = None) -> None: ...
