"""Nets: lists of operators on named blobs, which are built, printed, drawn, saved and loaded without running them."""

from cygrad.graph.definition import Blob, GradientSlice, Operator
from cygrad.graph.net import Net

__all__ = ["Blob", "GradientSlice", "Net", "Operator"]
