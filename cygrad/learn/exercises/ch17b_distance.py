"""The best distance (chapter 17).

Backward of a chain of n steps needs a value for each step. Only each k-th is kept, n / k rounded up, and the k - 1
between two of them are computed again when backward comes there. Write `alive(n, k)`: the largest number of values that
are alive at once. Then write `best(n)`: the k for which that is smallest; if there are several, the smallest of them.
"""


def alive(n, k):
    ...  # your code


def best(n):
    ...  # your code
