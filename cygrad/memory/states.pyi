# Written by tools/make_stubs.py; do not edit.
from typing import final

@final
class State:
    pass
@final
class Table:
    pass
