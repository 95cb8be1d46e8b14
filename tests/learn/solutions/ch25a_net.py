"""A net by hand (chapter 25).

Write `build()`: a net that computes tanh of the matrix product of "x" and "w", squares it, and has the mean of all
squares in the blob "loss". Then let it add its gradient operators for the loss. Return the net. The methods of a net
have the names of operators; each returns the name of the blob that it writes.
"""

from cygrad.graph import Net


def build():
    net = Net("first")
    net.mean(net.square(net.tanh(net.matmul(["x", "w"]))), "loss")
    net.add_gradient_operators(["loss"])
    return net
