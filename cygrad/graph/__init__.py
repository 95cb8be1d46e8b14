"""Nets: lists of operators on named blobs, which are built, differentiated, planned, run, printed, drawn and saved."""

from cygrad.graph.definition import Blob, GradientSlice, Operator
from cygrad.graph.gradients import GradientRegistry, register_gradient
from cygrad.graph.head import Head
from cygrad.graph.net import Net
from cygrad.graph.plan import Plan
from cygrad.graph.workspace import Workspace

__all__ = ["Blob", "GradientRegistry", "GradientSlice", "Head", "Net", "Operator", "Plan", "Workspace",
           "register_gradient"]
