"""Sample calls and NumPy references of ops/images/resize."""

import numpy as np

from . import Sampled
from .conv import each
from .makers import call, real


def weights(n, m, scale, mode, corners):
    """The matrix (m, n) that resizes n elements to m."""
    w = np.zeros((m, n))
    for i in range(m):
        if mode == "nearest":
            w[i, min(n - 1, int(np.floor(np.float32(i) * np.float32(scale))))] = 1
            continue
        at = i * scale if corners else (i + 0.5) * scale - 0.5
        if mode == "bicubic":
            first, a = int(np.floor(at)), -0.75
            for k in range(first - 1, first + 3):
                t = abs(at - k)
                w[i, min(max(k, 0), n - 1)] += ((a + 2) * t**3 - (a + 3) * t**2 + 1 if t <= 1
                                                else a * (t**3 - 5 * t**2 + 8 * t - 4))
        else:
            at = min(max(at, 0), n - 1)
            first = int(at)
            w[i, first] += 1 - (at - first)
            if at > first: w[i, first + 1] += at - first
    return w


def matrices(size, out, factors, mode, corners):
    for n, m, f in zip(size, out, factors, strict=True):
        scale = ((n - 1) / (m - 1) if m > 1 else 0) if corners else n / m if f is None else 1 / f
        yield weights(n, m, scale, mode, corners)


def along(x, ws):
    """x multiplied by a matrix along each of its last dimensions."""
    for d, w in enumerate(ws):
        x = np.moveaxis(np.tensordot(w.astype(x.dtype), x, (1, 2 + d)), 0, 2 + d)
    return x


def interpolate_like(x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    old, nd = x.shape[2:], x.ndim - 2
    factors = (None,) * nd if scale_factor is None else (
        (scale_factor,) * nd if np.isscalar(scale_factor) else scale_factor)
    new = each(size, nd) if size is not None else [int(n * f) for n, f in zip(old, factors, strict=True)]
    return along(x, matrices(old, new, factors, mode, align_corners))


def back_like(y, size, mode="nearest", align_corners=False):
    ws = matrices(size, y.shape[2:], (None,) * len(size), mode, align_corners)
    return along(y, [w.T for w in ws])


SAMPLES = [
    Sampled("interpolate", interpolate_like,
        lambda: [call(real(2, 2, 5), 8), call(real(1, 2, 3, 4), scale_factor=2), call(real(1, 1, 2, 3, 4), (3, 2, 7)),
         call(real(1, 2, 7), scale_factor=0.7), call(real(2, 1, 5), 9, mode="linear"),
         call(real(1, 2, 3, 4), (5, 9), mode="bilinear"),
         call(real(1, 1, 4, 5), scale_factor=(1.7, 0.6), mode="bilinear"),
         call(real(1, 2, 3, 4), (6, 2), mode="bilinear", align_corners=True),
         call(real(1, 1, 4, 5), (1, 8), mode="bilinear", align_corners=True),
         call(real(1, 2, 3, 4), (7, 3), mode="bicubic"),
         call(real(1, 1, 5, 2), (4, 5), mode="bicubic", align_corners=True),
         call(real(1, 1, 2, 3, 2), (3, 4, 3), mode="trilinear"), call(real(1, 1, 1, 1), (1, 1), mode="bicubic"),
         call(real(1, 1, 2, 17), (3, 33), mode="bilinear"), call(real(0, 2, 3, 4), 2, mode="bilinear")]),
    Sampled("interpolate_back", back_like,
        lambda: [call(real(2, 2, 8), size=(5,)), call(real(1, 2, 5, 9), size=(3, 4), mode="bilinear"),
         call(real(1, 1, 7, 3), size=(3, 4), mode="bicubic", align_corners=True),
         call(real(0, 2, 4), size=(3,), mode="linear")]),
]
