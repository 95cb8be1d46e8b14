"""Layers, losses and their initialization. Arguments and defaults are PyTorch's, with cygrad's word axis for dim.

Each family is a module that is loaded at its first use: cygrad.nn.Linear loads cygrad.nn.linear."""

from importlib import import_module as _import_module

from cygrad.nn.answers import of_nn as _of_nn
from cygrad.nn.module import HookHandle, LoadResult, Module
from cygrad.nn.parameter import Parameter

_FAMILIES = {
    "containers": ("ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"),
    "linear": ("Bilinear", "Flatten", "Identity", "Linear"),
    "embedding": ("Embedding", "EmbeddingBag"),
    "distance": ("CosineSimilarity", "PairwiseDistance"),
    "dropout": ("AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"),
    "activation": (
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
        "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
        "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
    ),
    "conv": ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    "images": (
        "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Fold",
        "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
        "ReplicationPad2d", "ReplicationPad3d", "Unfold", "Upsample", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
    ),
    "pooling": (
        "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
        "MaxPool2d", "MaxPool3d",
    ),
    "normalization": (
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
        "LayerNorm", "LocalResponseNorm", "RMSNorm",
    ),
    "recurrent": ("GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"),
    "attention": ("MultiheadAttention", "TransformerBlock", "TransformerEncoderLayer"),
    "transformer": ("Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder"),
    "summary": ("Summary", "SummaryRow"),
    "loss": (
        "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
        "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss",
        "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
        "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    ),
}
_HOME = {name: family for family, names in _FAMILIES.items() for name in names}

__all__ = ["HookHandle", "LoadResult", "Module", "Parameter", "init", *sorted(_HOME)]


def __getattr__(name):
    if name == "init": return _import_module("cygrad.nn.init")
    if name not in _HOME: raise AttributeError(_of_nn(name))
    found = globals()[name] = getattr(_import_module("cygrad.nn." + _HOME[name]), name)
    return found


def __dir__(): return __all__
