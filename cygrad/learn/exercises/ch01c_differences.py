"""A test for gradients (chapter 1).

Write `slope(f, x, h)`: the slope of f at the number x from two values of f, the difference of f at x + h and at x - h
over the distance of these points. Then write `agrees(f, gradient, x)`: True if `gradient`, a number, is the slope of f
at x to within a thousandth of the larger of 1 and its absolute value, else False. f is a function of one Python number,
and h = 1e-5 is small enough.
"""


def slope(f, x, h):
    ...  # your code


def agrees(f, gradient, x):
    ...  # your code
