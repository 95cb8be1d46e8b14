"""The mean of unequal parts (chapter 29).

Each rank has computed the mean of its rows, and the ranks have different numbers of rows. Write `mean(means, rows)`:
the mean of all rows, from the list of means and the list of numbers of rows.
"""


def mean(means, rows):
    ...  # your code
