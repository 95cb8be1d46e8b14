# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

DTYPES: tuple[Any, ...]
@disjoint_base
class Watch:
    pass
