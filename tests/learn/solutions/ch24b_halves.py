"""Two halves of a row (chapter 24).

Two threads compute one row of attention, each over half of the keys. Each has m, the maximum of its scores; l, the sum
of e^(s - m); and y, the sum of e^(s - m) v, not yet divided by l. Write `combined(first, second)`: for two triples (m,
l, y) the triple of the whole row.
"""

import numpy as np


def combined(first, second):
    m = max(first[0], second[0])
    a, b = np.exp(first[0] - m), np.exp(second[0] - m)
    return m, a * first[1] + b * second[1], a * first[2] + b * second[2]
