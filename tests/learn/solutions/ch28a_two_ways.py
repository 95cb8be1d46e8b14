"""A net with two ways (chapter 28).

Write `build()`: a net with the input "x" and the output "y". Where the sum of x is above 0, y is x doubled, else it is
the square of x. Only one of the two may be computed, so the decision is an operator: `add_operator("If", ...)` with two
nets, `then` and `otherwise`.
"""

from cygrad.graph import Net


def build():
    double, square, net = Net("double"), Net("square"), Net("decides")
    double.mul(["x", 2.0], "y")
    square.square("x", "y")
    net.greater([net.sum("x"), 0.0], "positive")
    net.add_operator("If", ["positive", "x"], "y", then=double, otherwise=square)
    return net
