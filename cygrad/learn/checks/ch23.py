"""Checks of chapter 23."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect, live


def patches(reader):
    x = np.arange(9.0).reshape(1, 3, 3)
    right = np.array([[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8.0]])
    got = np.asarray(reader.im2col(x, 2, 1))
    equal("im2col of 0 ... 8 as a 3 x 3 image, for k = 2,", got, right, "The first column is the patch 0, 1, 3, 4.")
    rng = np.random.default_rng(0)
    for shape, k, stride in (((2, 5, 6), 3, 1), ((3, 7, 7), 3, 2), ((2, 6, 4), 2, 2)):
        x = rng.normal(size=shape)
        right = cg.unfold(cg.asarray(x[None]), k, stride=stride).numpy()[0]
        got = np.asarray(reader.im2col(x, k, stride))
        elements = right.reshape(shape[0], k * k, -1).swapaxes(0, 1).reshape(right.shape)
        equal(f"im2col of an image {shape} for k = {k} and stride {stride}", got, right,
              "A row for each (channel, i, j), a column for each position, row by row.",
              [(right.T, "Rows and columns have changed places."),
               (elements, "The channel comes first in the order of the rows, then the place in the kernel."),
               (cg.unfold(cg.asarray(x[None]), k).numpy()[0], "The stride is not used.")])


def no_patches(reader):
    rng = np.random.default_rng(0)
    for c, size, o, k in ((2, 6, 3, 2), (16, 34, 4, 3)):
        x, w = (cg.tensor(rng.normal(size=s).astype("float32")) for s in ((c, size, size), (o, c, k, k)))
        right = cg.conv2d(x[None], w)[0]
        before = live()
        with cg.memory.track() as t: got = reader.convolution(x, w)
        peak = t.peak_bytes - before
        equal(f"The result for x {x.shape} and w {w.shape}", got, right,
              "For each (i, j): w[:, :, i, j] times the part of x that begins at row i and column j.",
              [(cg.conv2d(x[None], cg.flip(w, (2, 3)))[0],
                "The kernel is reversed: element (i, j) belongs to the part that begins at (i, j).")], rtol=1e-3)
        patches = c * k * k * (size - k + 1) ** 2 * 4
        expect(peak < patches / 2 or size < 10, f"The function took {peak:,} bytes. The matrix of patches would have "
                                                f"{patches:,}: multiply one shifted part after the other.")
