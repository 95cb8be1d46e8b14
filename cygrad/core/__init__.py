"""Floor 1: memory, tensors, the graph, and how operations run forward and backward."""
