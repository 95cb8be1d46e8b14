# Written by tools/make_stubs.py; do not edit.

from cygrad.graph.definition import Blob as Blob
from cygrad.graph.definition import GradientSlice as GradientSlice
from cygrad.graph.net import Net as Net
from cygrad.graph.definition import Operator as Operator
__all__ = ['Blob', 'GradientSlice', 'Net', 'Operator']
