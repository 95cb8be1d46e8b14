"""The slope of a curve (chapter 1).

`f` is a curve. Write `slope(numbers)`: the derivative of f at each number of the list, as a tensor. Let cygrad compute
it: make a variable of the numbers (`attach_grad`), call f inside of `cg.record()`, call `backward()` on the sum of the
result, and return the gradient of the variable. It must work for any f.
"""

import cygrad as cg


def f(x):
    return x * x * x - 2.0 * x


def slope(numbers):
    x = cg.tensor(numbers).attach_grad()
    with cg.record():
        y = f(x).sum()
    y.backward()
    return x.grad
