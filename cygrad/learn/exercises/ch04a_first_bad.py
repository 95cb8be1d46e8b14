"""Where does the NaN come from? (chapter 4)

A loss is NaN, and somewhere a layer made the first number that is not finite. Write `first_bad(layers, x)`: call the
layers, a list of functions, one after the other, beginning with the tensor x, and return the position of the first one
whose result has a number that is NaN or infinite. Return -1 if there is none.
"""

import cygrad as cg


def first_bad(layers, x):
    ...  # your code
