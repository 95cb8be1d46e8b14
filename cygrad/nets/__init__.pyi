# Written by tools/make_stubs.py; do not edit.

from cygrad.nets.definition import Blob as Blob
from cygrad.nets.gradients import GradientRegistry as GradientRegistry
from cygrad.nets.definition import GradientSlice as GradientSlice
from cygrad.nets.head import Head as Head
from cygrad.nets.net import Net as Net
from cygrad.nets.definition import Operator as Operator
from cygrad.nets.plan import Plan as Plan
from cygrad.nets.workspace import Workspace as Workspace
from cygrad.nets.net import load as load
from cygrad.nets.gradients import register_gradient as register_gradient
__all__ = ['Blob', 'GradientRegistry', 'GradientSlice', 'Head', 'Net', 'Operator', 'Plan', 'Workspace', 'load', 'register_gradient']
