"""The core: memory, tensors, the graph, and how operations run forward and backward."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
