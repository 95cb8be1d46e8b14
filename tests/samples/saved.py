"""What backward saves, in words, for the operator page: the tokens of Sampled.keeps that are not inputs.

tests/support/rows.py has the bytes of each, and the table test compares them with what is saved."""

SMALL = "in the smallest integers that hold it"

SAVED = {
    "out": "the result",
    "sum": "`x`",                                   # eigvalsh is tested with x + x'
    "lse": "log sum e^x of each row (1 number)",
    "row_logs": "log sum e^x of each row (1 number)",
    "alignment": "the lengths, and the labels of the targets (8 bytes each)",
    "weights": "`weight` (1 number for each class)",
    "pairs": "2 bits for each element of the common shape of both inputs",
    "rates": "`rate` of each row (1 number)",
    "groups": "the mean and `rate` of each group (2 numbers)",
    "instances": "the mean and `rate` of each channel of each sample (2 numbers)",
    "channels": "the mean and `rate` of each channel (2 numbers)",
    "statistics": "log sum e^s of each query (1 number)",
    "hiddens": "`h` of each step",
    "cells": "`c` of each step",
    "gates": "the gates of each step (4 numbers for each element of `h`)",
    "taps": "the place of each maximum in its window (8 bits if the window has at most 256 elements)",
    "order": f"the position of each element in its row, {SMALL}",
    "bits": "1 bit for each element of the input",
    "codes": "2 bits for each element of the result",
    "truths": "1 bit for each element of the result",
    "choice": "1 bit for each element of the result (2 if several inputs need gradients)",
    "places": "1 bit for each element of the mask, or the positions of the true ones if they take fewer bytes",
    "hard": "1 bit for each target",
    "rows": f"the row of each index, {SMALL}",
    "winners": f"the row of each element of the result, {SMALL}",
    "difference": "`x - y`",
}

# What the column says of a row whose function calls other operators.
CALLS = {
    "topk": "nothing; the values are those of `gather`, which saves `index`",
    "getitem": "nothing; index arrays use `take`, masks `select`",
}

# When a value is saved, if the arguments that are not arrays do not decide it: by row and token.
CASES = {
    ("qr", "x"): "if it has more columns than rows",
    ("where", "truths"): "if the condition has the shape of the result",
    ("where", "condition"): "otherwise",
    ("bce_with_logits", "hard"): "if all targets are 0 or 1 and need no gradient",
    ("bce_with_logits", "targets"): "otherwise",
}
