"""Attention with a mask (chapter 10).

Write `attention(q, k, v)` for tensors (steps, size): the scores are q k' divided by the root of the size; step i may
see the steps 0 to i only, so the scores of later steps become minus infinity; the softmax of a row of scores has its
weights; and the result is the weighted sum of the rows of v. Do not use cg.scaled_dot_product_attention.
"""

import math

import cygrad as cg


def attention(q, k, v):
    ...  # your code
