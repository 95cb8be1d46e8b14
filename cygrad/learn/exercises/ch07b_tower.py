"""Layers in a list (chapter 7).

Write the module `Tower`: `Tower(n, width)` has n linear layers of width to width in a list, and its forward applies one
after the other, with a tanh after each. The parameters of all layers must be found, which they are not in a plain list.
"""

import cygrad as cg
from cygrad import nn


class Tower(nn.Module):
    def __init__(self, n, width):
        ...  # your code

    def forward(self, x):
        ...  # your code
