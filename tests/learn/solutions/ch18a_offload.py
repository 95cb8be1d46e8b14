"""Saved values in a file (chapter 18).

Write `gradient(f, x, folder)`: the pair (gradient, bytes). The first is the gradient of the sum of f(x) with respect to
the tensor x. While f runs, what the graph saves goes to a file in the folder (`cg.memory.offload`). The second is how
many bytes were written. Backward must run after the scope has ended: then all that was saved is in the file.
"""

import cygrad as cg


def gradient(f, x, folder):
    x = x.copy().attach_grad()
    with cg.memory.offload(folder) as o:
        with cg.record():
            y = f(x).sum()
    y.backward()
    return x.grad, o.written_bytes
