# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any

COMPOSED: dict[Any, Any]
PARTS: list[Any]
ROWS: dict[str, Row]
TABLE: list[Row]
class Row:
    name: str
    family: str
    late: bool
    methods: tuple[str, ...]
    aliases: tuple[str, ...]
    public: bool
    def __init__(self, function: Callable[..., Any] | str, operator: str | None = None, methods: tuple[str, ...] = ..., aliases: tuple[str, ...] = ..., public: bool = True) -> None: ...
    @property
    def module(self) -> Any: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def operator(self) -> Any: ...
