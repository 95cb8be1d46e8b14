from cygrad import Tensor


def isbox(x):
    return isinstance(x, Tensor)
