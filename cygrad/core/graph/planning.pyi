# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class planning:
    def __enter__(self) -> Any: ...
    def __exit__(self, kind: object = None, value: object = None, traceback: object = None) -> Any: ...
