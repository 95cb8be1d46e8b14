"""A number that was frozen (chapter 27).

`centred(x)` subtracts from each row the mean of all rows. It is captured as a net with a batch of 4 rows. For batches
of other sizes the net is wrong, because a number of Python is a constant from the moment of the capture. Change the
function so that the net is right for each size.
"""

import cygrad as cg


def centred(x):
    return x - x.mean(0)
