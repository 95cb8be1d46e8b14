"""Tensors, nodes and slots, and the contract of an operator."""
