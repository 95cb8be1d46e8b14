# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

ASSIGNED: tuple[Any, ...]
CHECKS: dict[Any, Any]
DTYPES: tuple[Any, ...]
NUMBERS: tuple[Any, ...]
@disjoint_base
class Group:
    pass
@disjoint_base
class Parameter:
    pass
def check_names(what: Any, own: Any, given: Any) -> Any: ...
def fraction(name: Any, value: Any) -> Any: ...
def not_negative(name: Any, value: Any) -> Any: ...
def positive(name: Any, value: Any) -> Any: ...
def truth(name: Any, value: Any) -> Any: ...
