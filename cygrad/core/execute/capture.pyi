# Written by tools/make_stubs.py; do not edit.
from typing import Any, Never
from typing_extensions import disjoint_base

@disjoint_base
class Capture:
    pass
@disjoint_base
class Captured:
    pass
def executed(f: Any, *args: Never, **kwargs: Any) -> Any: ...
