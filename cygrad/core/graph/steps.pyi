# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Step:
    @property
    def name(self) -> Any: ...
    @property
    def source(self) -> Any: ...
