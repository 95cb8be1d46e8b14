"""Names that keep memory (chapter 12).

`total(x)` is called inside of `cg.record()`. It computes a chain and returns its sum. Each intermediate result has a
name until the function returns, although backward needs none of the results of `* 1.5`. Change the function so that its
peak falls: at no moment may there be more live bytes than the values that backward needs and two further results. The
value stays the same, to the bit.
"""

import cygrad as cg


def total(x):
    a = x * 1.5
    b = cg.sin(a)
    c = b * 1.5
    d = c * 1.5
    e = d * 1.5
    f = e * 1.5
    return f.sum()
