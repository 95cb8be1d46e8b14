"""Sample calls and NumPy references of ops/losses/linear_entropy."""

from . import Sampled
from .entropy import cross_entropy_like, several
from .makers import LABELS, call, real


def linear_cross_entropy_like(x, weight, target, bias=None, *, chunk=None, **kwargs):
    z = x @ weight.T if bias is None else x @ weight.T + bias
    reduction = kwargs.get("reduction", "mean")
    y = cross_entropy_like(z.reshape(-1, z.shape[-1]), target.reshape(-1), **kwargs)
    return y.reshape(target.shape) if reduction == "none" else y


KEPT = "x weight target bias row_logs"

SAMPLES = [
    Sampled("linear_cross_entropy", linear_cross_entropy_like,
        lambda: [call(real(4, 5), real(3, 5), LABELS), call(real(4, 5), real(3, 5), LABELS, real(3), chunk=3),
         call(real(4, 5), real(3, 5), LABELS, real(3), chunk=1, reduction="none", ignore_index=2),
         call(real(2, 3, 4), real(7, 4), several(2, 3, high=7, ignored=-100), reduction="none", chunk=4),
         call(real(5), real(3, 5), LABELS[1:2].reshape(()), label_smoothing=0.2),
         call(real(0, 5), real(3, 5), LABELS[:0], reduction="sum"),
         call(real(17, 8), real(130, 8), several(17, high=130), real(130), chunk=16, label_smoothing=0.1,
              reduction="sum")],
        {"x": KEPT, "weight": KEPT, "bias": KEPT}),
]
