"""Nets: lists of operators on named blobs, which are built, differentiated, planned, run, printed, drawn and saved.

The package is public as cygrad.graph, too."""

from cygrad.nets.definition import Blob, GradientSlice, Operator
from cygrad.nets.gradients import GradientRegistry, register_gradient
from cygrad.nets.head import Head
from cygrad.nets.net import Net, load
from cygrad.nets.plan import Plan
from cygrad.nets.workspace import Workspace

__all__ = ["Blob", "GradientRegistry", "GradientSlice", "Head", "Net", "Operator", "Plan", "Workspace",
           "load", "register_gradient"]


def __dir__(): return __all__
