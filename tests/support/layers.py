"""Comparison of the layers of cygrad.nn with PyTorch's modules on PyTorch's own sample inputs (ModuleInfo). Each layer
is made with the arguments of PyTorch's sample, loads its state_dict, and has its mode.

`python tests/support/layers.py` compares everything and prints the counts of tests/support/layers.txt. Write them there
when layers are added. The comparison is that of modules.py."""

import sys

import cygrad as cg
from conventions import NO_AXIS, refuse
from layers_made import layer
from layers_nets import NETS
from modules import after_log_softmax, count, refuse_all_ignored, without_options
from opinfo import report

# ---- what cygrad refuses ---------------------------------------------------------------------------------------------

def softplus(m, x):
    refuse(m.threshold != 20, "threshold=")


def some_axis(m, x):
    refuse(not x.shape, NO_AXIS)


def cross_entropy(m, x, target):
    refuse_all_ignored(m, target)


def linear_cross_entropy(m, x, target):
    refuse(m.out_features != (), "out_features=")
    refuse(m.weight is not None, "weight=")
    refuse(target.dtype.kind == "f", "probabilities as the target")
    refuse_all_ignored(m, target)


def kl_div(m, x, target):
    refuse(m.reduction == "batchmean" and not x.shape, "batchmean of a 0-d tensor")


LAYERS = [
    layer("Linear"),
    layer("Bilinear"),
    layer("Embedding"),

    *map(layer, ("Hardswish", "LogSigmoid", "Mish", "ReLU", "SELU", "SiLU", "Sigmoid", "Softsign", "Tanh", "CELU",
                 "ELU", "GELU", "GLU", "Hardtanh", "LeakyReLU", "PReLU", "ReLU6", "Tanhshrink", "Threshold",
                 "Softmax2d", "Hardshrink", "Softshrink")),
    layer("Softplus", check=softplus),
    *(layer(name, check=some_axis) for name in ("Softmax", "LogSoftmax", "Softmin")),

    *map(layer, ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "NLLLoss", "GaussianNLLLoss", "PoissonNLLLoss",
                 "HingeEmbeddingLoss", "SoftMarginLoss", "MarginRankingLoss", "CosineEmbeddingLoss",
                 "MultiLabelSoftMarginLoss", "BCELoss", "BCEWithLogitsLoss")),
    layer("KLDivLoss", check=kl_div),
    layer("MultiMarginLoss", second=False),
    layer("MultiLabelMarginLoss", second=False),
    layer("CrossEntropyLoss", check=cross_entropy, second=False),       # (modules.py compares the second ones)
    layer("LinearCrossEntropyLoss", check=linear_cross_entropy, theirs=without_options, second=False,
          without=("out_features", "weight", "options")),
    layer("CTCLoss", call=lambda loss, x, *args: loss(cg.log_softmax(x), *args), theirs=after_log_softmax,
          second=False),
]

WITHOUT = {
    **dict.fromkeys(("FractionalMaxPool2d", "FractionalMaxPool3d"), "cygrad has no such function"),
    **dict.fromkeys([f"Lazy{name}{d}d" for d in (1, 2, 3) for name in ("Conv", "ConvTranspose")],
                    "in_channels=None does that; see test_conv.py"),
}

if __name__ == "__main__":
    layers = [*LAYERS, *NETS]
    sys.exit(report(layers, count, f"{len(layers)} layers"))
