# Written by tools/make_stubs.py; do not edit.

from cygrad.io.saving import load as load
from cygrad.io.saving import metadata as metadata
from cygrad.io.saving import save as save
__all__ = ['load', 'metadata', 'save']
