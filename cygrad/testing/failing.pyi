# Written by tools/make_stubs.py; do not edit.
from typing import Any, Never
from typing_extensions import disjoint_base
from cygrad.memory.scopes import Open

@disjoint_base
class Failing(Open):
    def __init__(self, *args: Never, **kwargs: Any) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, kind: object = None, value: object = None, traceback: object = None) -> Any: ...
