"""What takes the most? (chapter 14)

Write `largest(step)`: run the function `step` inside of `cg.memory.profile()`, and return the pair (operation, bytes)
of the operation that has the most bytes at the peak, all its rows together. What was alive before the profile, the rows
of the operation "before", does not count. `at_peak()` has the rows; a row has `.operation` and `.bytes`.
"""

import cygrad as cg


def largest(step):
    with cg.memory.profile() as p:
        step()
    found = {}
    for row in p.at_peak():
        if row.operation != "before":
            found[row.operation] = found.get(row.operation, 0) + row.bytes
    return max(found.items(), key=lambda item: item[1])
