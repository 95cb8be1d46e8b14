# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

RULES: dict[Any, Any]
@disjoint_base
class Sampling:
    @property
    def blocks(self) -> Any: ...
