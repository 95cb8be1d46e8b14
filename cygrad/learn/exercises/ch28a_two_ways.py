"""A net with two ways (chapter 28).

Write `build()`: a net with the input "x" and the output "y". Where the sum of x is above 0, y is x doubled, else it is
the square of x. Only one of the two may be computed, so the decision is an operator: `add_operator("If", ...)` with two
nets, `then` and `otherwise`.
"""

from cygrad.graph import Net


def build():
    ...  # your code
