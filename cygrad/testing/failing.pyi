# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base
from cygrad.memory.scopes import Open
from cygrad.testing.scopes import Failure

@disjoint_base
class Failing(Open):
    def __init__(self, n: Any, persistent: Any, kind: Any) -> None: ...
    def __enter__(self) -> Failure: ...
    def __exit__(self, kind: object = None, value: object = None, traceback: object = None) -> None: ...
