"""Layers in a list (chapter 7).

Write the module `Tower`: `Tower(n, width)` has n linear layers of width to width in a list, and its forward applies one
after the other, with a tanh after each. The parameters of all layers must be found, which they are not in a plain list.
"""

import cygrad as cg
from cygrad import nn


class Tower(nn.Module):
    def __init__(self, n, width):
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n))

    def forward(self, x):
        for layer in self.layers:
            x = cg.tanh(layer(x))
        return x
