# Written by tools/make_stubs.py; do not edit.
from typing import Any

from cygrad.ops.table import Row as Row
__all__ = ['COMPOSED', 'ROWS', 'Row', 'TABLE']
COMPOSED: dict[Any, Any]
ROWS: dict[str, Row]
TABLE: list[Row]
TENSOR: dict[Any, Any]
loaded: list[Any]
operators: dict[Any, Any]
