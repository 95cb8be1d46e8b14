# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Undo:
    def check(self) -> Any: ...
@disjoint_base
class Twin(Undo):
    pass
