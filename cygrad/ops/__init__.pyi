# Written by tools/make_stubs.py; do not edit.

from cygrad.ops.table import Row as Row
__all__ = ['ROWS', 'Row', 'TABLE']
ROWS: dict[str, Row]
TABLE: list[Row]
