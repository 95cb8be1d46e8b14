# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Collected:
    @property
    def leaves(self) -> Any: ...
    @property
    def abandoned(self) -> Any: ...
def open_collected(c: Any) -> Any: ...
