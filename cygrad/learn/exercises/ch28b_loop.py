"""A net with a loop (chapter 28).

Write `build()`: a net with the input "n", a whole number of at least 1, and the output "f", the product 1 2 3 ... n. It
needs a While with two nets: `condition` says whether the loop goes on, and `body` makes a turn. What is carried from
turn to turn are the product so far and the next factor. n stays as it is.
"""

from cygrad.graph import Net


def build():
    ...  # your code
