# Written by tools/make_stubs.py; do not edit.

class GraphFreedError(RuntimeError):
    pass
class InplaceError(RuntimeError):
    pass
