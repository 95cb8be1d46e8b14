# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Lender:
    @property
    def owner(self) -> Any: ...
def external_bytes() -> Any: ...
