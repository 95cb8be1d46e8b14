"""A model in one file (chapter 3).

Write `export(model, example, path)`: capture the model as a net (`cg.graph.Net.capture`) with `example`, a tensor, as
its input, and save the net with its weights at `path`. The check loads the file by `cg.graph.load(path)` and calls the
result. The file must need nothing else: neither the class of the model nor its parameters.
"""

import cygrad as cg


def export(model, example, path):
    net = cg.graph.Net.capture(model, example)
    net.save(path, weights=True)
