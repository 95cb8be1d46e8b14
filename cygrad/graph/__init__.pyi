# Written by tools/make_stubs.py; do not edit.

from cygrad.graph.definition import Blob as Blob
from cygrad.graph.gradients import GradientRegistry as GradientRegistry
from cygrad.graph.definition import GradientSlice as GradientSlice
from cygrad.graph.head import Head as Head
from cygrad.graph.net import Net as Net
from cygrad.graph.definition import Operator as Operator
from cygrad.graph.plan import Plan as Plan
from cygrad.graph.workspace import Workspace as Workspace
from cygrad.graph.gradients import register_gradient as register_gradient
__all__ = ['Blob', 'GradientRegistry', 'GradientSlice', 'Head', 'Net', 'Operator', 'Plan', 'Workspace', 'register_gradient']
