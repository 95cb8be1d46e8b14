# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class States:
    pass
def recurrence_gradients(kind: Any, gates_at: Any, c: Any, g: Any) -> Any: ...
