"""The best fit (chapter 15).

Free memory is a list of spans (start, size), in the order of their addresses. Write `best_fit(free, nbytes)`: the start
of the smallest span in which so many bytes have room; of spans of equal size the first one. If there is none, return
-1. Then write `take(free, nbytes)`: the list of the free spans after these bytes were taken from the front of that
span. A span of which nothing is left is not in the list. If there is no room, return the list as it is.
"""


def best_fit(free, nbytes):
    ...  # your code


def take(free, nbytes):
    ...  # your code
