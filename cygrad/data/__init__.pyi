# Written by tools/make_stubs.py; do not edit.

from cygrad.data.loader import DataLoader as DataLoader
__all__ = ['DataLoader']
