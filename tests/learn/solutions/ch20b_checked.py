"""A gradient that is wrong (chapter 20).

The gradient of this operation is wrong. The tests that the author wrote did not notice, because in them the operation
came last and its input was positive. Use `cg.testing.gradcheck(Cubed.apply, x)` with a tensor x of your own to see it,
and repair `backward`. Keep to one saved array.
"""

import cygrad as cg


class Cubed(cg.autograd.Function):
    """y = |x|³"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return abs(x) ** 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * abs(x)
