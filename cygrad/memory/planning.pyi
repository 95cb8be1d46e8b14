# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any
from cygrad.memory.profiling import profile

def plan(f: Callable[..., object], *example: Any, **named: Any) -> profile: ...
