# Written by tools/make_stubs.py; do not edit.
from cygrad.core.backward.walk import Walk

class Pass(Walk):
    pass
