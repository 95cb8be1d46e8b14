"""A net with a loop (chapter 28).

Write `build()`: a net with the input "n", a whole number of at least 1, and the output "f", the product 1 2 3 ... n. It
needs a While with two nets: `condition` says whether the loop goes on, and `body` makes a turn. What is carried from
turn to turn are the product so far and the next factor. n stays as it is.
"""

from cygrad.graph import Net


def build():
    goes, turn, net = Net("goes"), Net("turn"), Net("factorial")
    goes.less_equal(["i", "n"])
    turn.mul(["f", "i"], "f2")
    turn.add(["i", 1], "i2")
    for inner in (goes, turn):
        inner.inputs = ["f", "i", "n"]
    turn.outputs = ["f2", "i2"]
    net.add_operator("While", [1, 1, "n"], ["f", "i"], condition=goes, body=turn)
    return net
