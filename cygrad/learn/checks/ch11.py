"""Checks of chapter 11."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect, live, plain


def strides(reader):
    for shape in ((5,), (2, 3), (2, 3, 4), (7, 1, 2, 3)):
        right = cg.zeros(shape).strides
        column, step = [], 1
        for n in shape:
            column.append(step)
            step *= n
        equal(f"strides({shape})", reader.strides(shape), right,
              "The stride of an axis is the product of the sizes of all axes after it.",
              [(tuple(column), "These are the strides of column-major order. Begin with the last axis."),
               (tuple(4 * s for s in right), "These are bytes. Count elements.")] if len(shape) > 1 else
              [((4,), "These are bytes. Count elements.")])
    for index, steps, right in (((1, 2), (3, 1), 5), ((1, 2), (1, 3), 7), ((3, 1), (0, 1), 1),
                                ((1, 2, 3), (12, 4, 1), 23)):
        equal(f"offset({index}, {steps})", reader.offset(index, steps), right,
              "Add up index times stride over the axes.")


def keep(reader):
    before = live()
    batches = [cg.random.Generator(k).normal((100, 64)) for k in range(3)]
    right = [b[b.sum(1).argmax().item()].tolist() for b in batches]
    rows = reader.best_rows(batches)
    equal("The rows", [np.asarray(plain(r)).tolist() for r in rows], right, "Their values must be those of before.")
    del batches
    held, wanted = live() - before, 3 * 64 * 4
    expect(held <= wanted, f"The result holds {held:,} bytes, but three rows of 64 float32 numbers are {wanted:,} "
                           "bytes. A view holds the whole buffer of its batch: a copy of the row does not.")
