"""The wording of errors: layers, losses and initializers."""

import numpy as np

import cygrad as cg
from cygrad import nn

CASES = [
    (lambda: nn.ReLU(inplace=True), TypeError, "ReLU takes no inplace: its result is a new tensor; leave it out"),
    (lambda: nn.Tanh(3), TypeError, "Tanh takes no arguments"),
    (lambda: nn.Softmax(dim=1), TypeError, "Softmax takes axis, not dim"),
    (lambda: nn.Flatten(start_dim=0), TypeError, "Flatten takes start, not start_dim"),
    (lambda: nn.MSELoss(size_average=True), TypeError,
     "MSELoss takes no size_average: use reduction=\"mean\" or \"sum\""),
    (lambda: nn.Embedding(3, 4, max_norm=1.0), TypeError,
     "Embedding takes no max_norm: scale rows of the weight in place before the call"),
    (lambda: nn.Softplus(threshold=10), TypeError, "Softplus takes no threshold; it takes beta"),
    (lambda: nn.LazyLinear(3), AttributeError,
     "module 'cygrad.nn' has no attribute 'LazyLinear': use Linear(None, out_features), whose first call gives "
     "in_features"),
    (lambda: nn.LazyConv2d, AttributeError,
     "module 'cygrad.nn' has no attribute 'LazyConv2d': use Conv2d(None, ...), whose first call gives the number of "
     "channels"),
    (lambda: nn.utils, AttributeError,
     "module 'cygrad.nn' has no attribute 'utils': the solvers of cygrad.optim have clip_grad_by_global_norm() and "
     "clip_grad_by_value()"),
    (lambda: cg.optim.lr_scheduler, AttributeError,
     "module 'cygrad.optim' has no attribute 'lr_scheduler': the schedules are in cygrad.optim itself, such as "
     "cygrad.optim.StepLR"),
    (lambda: cg.optim.LBFGS, AttributeError, "module 'cygrad.optim' has no attribute 'LBFGS': no "
     "solver has a line search; the nearest is scipy.optimize.minimize, with gradients from cygrad"),
    (lambda: nn.Linear(2, 3, generator=3), TypeError,
     "generator must be a cygrad.random.Generator or None (the default one), got 3"),
    (lambda: nn.init.normal_(cg.ones(2), generator=3), TypeError,
     "generator must be a cygrad.random.Generator or None (the default one), got 3"),
    (lambda: nn.Hardshrink, AttributeError, "module 'cygrad.nn' has no attribute 'Hardshrink'"),
    (lambda: nn.Linear(2, 3, device="cuda"), ValueError,
     "Linear: device must be None or \"cpu\", got 'cuda'; all memory is the CPU's"),
    (lambda: nn.Linear(2, 3, dtype="int64"), TypeError, "Linear: dtype must be float32 or float64, got int64"),
    (lambda: nn.Linear(2.5, 3), TypeError, "Linear: in_features must be an int, got 2.5"),
    (lambda: nn.Linear(2, 0), ValueError, "Linear: out_features must be at least 1, got 0"),
    (lambda: nn.Linear(None, 3)(cg.ones(())), ValueError,
     "Linear: x must have at least one dimension, its features; got shape ()"),
    (lambda: nn.Embedding(3, 4, padding_idx="a"), TypeError,
     "Embedding: padding_idx must be an int or None, got 'a'"),
    (lambda: nn.EmbeddingBag(3, 4, padding_idx=3), ValueError,
     "EmbeddingBag: padding_idx 3 is out of range for 3 rows"),
    (lambda: nn.Embedding.from_pretrained(np.ones(3)), ValueError,
     "Embedding.from_pretrained: embeddings must be (rows, columns), got (3,)"),
    (lambda: nn.EmbeddingBag(3, 4, mode="min"), ValueError,
     "EmbeddingBag: mode must be \"sum\", \"mean\" or \"max\", got 'min'"),
    (lambda: nn.EmbeddingBag(3, 4, mode="max", sparse=True), ValueError,
     "EmbeddingBag: with mode=\"max\" the gradient is a tensor; leave out sparse"),
    (lambda: nn.Dropout("0.5"), TypeError, "Dropout: p must be a number, got '0.5'"),
    (lambda: nn.Dropout2d(1.5), ValueError, "Dropout2d: p must be from 0 to 1, got 1.5"),
    (lambda: nn.Dropout2d()(cg.ones(2, 3, 4)), ValueError,
     "Dropout2d: x must have 4 dimensions, got (2, 3, 4); Dropout1d takes (N, C, L)"),
    (lambda: nn.Dropout3d()(cg.ones(2, 3)), ValueError, "Dropout3d: x must have 4 or 5 dimensions, got (2, 3)"),
    (lambda: nn.GELU("erf"), ValueError, "GELU: approximate must be \"none\" or \"tanh\", got 'erf'"),
    (lambda: nn.Hardtanh(1.0, 1.0), ValueError, "Hardtanh: min_val must be less than max_val, got 1.0 and 1.0"),
    (lambda: nn.Softmax2d()(cg.ones(2, 3)), ValueError, "Softmax2d: x must be (N, C, H, W) or (C, H, W), got (2, 3)"),
    (lambda: nn.L1Loss(reduction="batchmean"), ValueError,
     "L1Loss: reduction must be one of \"mean\", \"sum\", \"none\", got 'batchmean'"),

    (lambda: nn.init.uniform_(np.ones(2)), TypeError,
     "uniform_ fills a tensor of float32 or float64, got a float64 array of shape (2,)"),
    (lambda: nn.init.eye_(cg.ones(2)), ValueError, "eye_: the tensor must have 2 dimensions, got (2,)"),
    (lambda: nn.init.xavier_normal_(cg.ones(2)), ValueError,
     "xavier_normal_: a tensor of shape (2,) has no fan_in and fan_out; it must have at least 2 dimensions"),
    (lambda: nn.init.kaiming_normal_(cg.ones(2, 2), mode="fan"), ValueError,
     "kaiming_normal_: mode must be \"fan_in\" or \"fan_out\", got 'fan'"),
    (lambda: nn.init.calculate_gain("swish"), ValueError,
     "calculate_gain: nonlinearity must be one of linear, identity, sigmoid, tanh, relu, selu, conv1d, conv2d, conv3d, "
     "conv_transpose1d, conv_transpose2d, conv_transpose3d and leaky_relu, got 'swish'"),
    (lambda: nn.init.dirac_(cg.ones(3, 2, 3), groups=2), ValueError,
     "dirac_: a weight of shape (3, 2, 3) in 2 groups; it must be (out, in, *kernel), and groups must divide out"),
    (lambda: nn.init.dirac_(cg.ones(3, 2, 3), 1.0), TypeError, "dirac_: groups must be an int, got 1.0"),
    (lambda: nn.init.sparse_(cg.ones(2, 2), 1.5), ValueError, "sparse_: sparsity must be from 0 to 1, got 1.5"),
    (lambda: nn.init.Initializer()((2,)), NotImplementedError,
     "Initializer has no __call__; use one of its subclasses"),
]
