"""The block of a product (chapter 22).

The inner loop of a product keeps a block of r rows and v vectors of C in registers. For each term it loads r numbers of
A and v vectors of B, and does r v multiply-adds. In registers there must be the r v sums, the v vectors of B and one
number of A. Write `loads(r, v)`: the loads for each multiply-add. Then write `block(registers)`: the pair (r, v) with
the fewest loads for each multiply-add that fits into so many registers and has at least eight sums.
"""


def loads(r, v):
    ...  # your code


def block(registers):
    ...  # your code
