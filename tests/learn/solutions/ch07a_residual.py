"""A layer with a way around (chapter 7).

Write the module `Residual`. It holds another module, `inner`, and its result for x is x + inner(x). The parameters of
`inner` must be found: `named_parameters()` of a Residual around a Linear lists inner.weight and inner.bias.
"""

from cygrad import nn


class Residual(nn.Module):
    def __init__(self, inner):
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)
