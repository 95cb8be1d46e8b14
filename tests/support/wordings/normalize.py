"""The wording of errors: normalization."""

import cygrad as cg

X = (2, 4, 3)

CASES = [
    (lambda: cg.layer_norm(cg.zeros((2, 3)), (3,), cg.ones(3), cg.zeros(3)), TypeError,
     "layer_norm takes no normalized_shape, which is the shape of the weight: layer_norm(x, weight, bias), or "
     "layer_norm(x, axes=(-1,)) without a weight"),
    (lambda: cg.layer_norm(cg.zeros((2, 1)), [1], cg.ones(1), cg.zeros(1)), TypeError,
     "layer_norm takes no normalized_shape, which is the shape of the weight: layer_norm(x, weight, bias), or "
     "layer_norm(x, axes=(-1,)) without a weight"),
    (lambda: cg.rms_norm(cg.zeros((4, 2, 3)), (2, 3), cg.ones((2, 3))), TypeError,
     "rms_norm takes no normalized_shape, which is the shape of the weight: rms_norm(x, weight), or rms_norm(x, "
     "axes=(-2, -1)) without a weight"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), 3), TypeError,
     "layer_norm takes no normalized_shape, which is the shape of the weight: layer_norm(x, weight, bias), or "
     "layer_norm(x, axes=(-1,)) without a weight"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), cg.zeros(2), cg.zeros(2)), ValueError,
     "layer_norm: x is (2, 3), weight (2,) and bias (2,); weight and bias must have the shape of the last dimensions "
     "of x, which are normalized"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), cg.zeros(2)), ValueError,
     "layer_norm: x is (2, 3), weight (2,); weight must have the shape of the last dimensions of x, which are "
     "normalized"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), bias=cg.zeros(2)), ValueError,
     "layer_norm: x is (2, 3) and bias is (2,); bias must have the shape of the last dimensions of x, which are "
     "normalized"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), axes=()), ValueError,
     "layer_norm: axes is empty; wanted at least one axis"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), axes=2), IndexError,
     "axis 2 is out of range for a tensor of 2 dimensions"),
    (lambda: cg.layer_norm(cg.tensor(1.0)), IndexError,
     "axis -1 is out of range for a tensor of 0 dimensions"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), cg.zeros(3), cg.zeros(3), eps="1"), TypeError,
     "layer_norm: eps must be a number, got '1'"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), cg.zeros(3), cg.zeros(3), eps=float("inf")), ValueError,
     "layer_norm: eps is inf; wanted a finite number"),
    (lambda: cg.layer_norm(cg.zeros((2, 3)), axes=(1, 1)), ValueError,
     "layer_norm: duplicate axis 1 in (1, 1)"),
    (lambda: cg.rms_norm(cg.zeros((2, 3)), axes=[0, 1, -2]), ValueError,
     "rms_norm: duplicate axis 0 in [0, 1, -2]"),
    (lambda: cg.rms_norm(cg.zeros((2, 3)), axes=1.5), TypeError,
     "rms_norm: axes must be an integer or a sequence of integers, got 1.5"),
    (lambda: cg.rms_norm(cg.zeros((2, 3)), cg.zeros(2)), ValueError,
     "rms_norm: x is (2, 3), weight (2,); weight must have the shape of the last dimensions of x, which are "
     "normalized"),
    (lambda: cg.group_norm(cg.zeros(X), 3), ValueError,
     "group_norm: x is (2, 4, 3), whose 4 channels (axis 1) are not a multiple of the 3 groups"),
    (lambda: cg.group_norm(cg.zeros(X), 0), ValueError,
     "group_norm: num_groups is 0; it must be at least 1"),
    (lambda: cg.group_norm(cg.zeros(X), 2**70), ValueError,
     "group_norm: num_groups is 1180591620717411303424; it must be at most 2147483647"),
    (lambda: cg.group_norm(cg.zeros(X), 2.0), TypeError,
     "group_norm: num_groups must be an integer, got 2.0"),
    (lambda: cg.group_norm(cg.zeros(X), 2, cg.zeros(3)), ValueError,
     "group_norm: x is (2, 4, 3) and weight is (3,); wanted an element for each of the 4 channels, which are axis 1"),
    (lambda: cg.instance_norm(cg.zeros(3)), ValueError,
     "instance_norm: x is (3,); wanted (n, channels, ...)"),
    (lambda: cg.instance_norm(cg.zeros(X), cg.zeros(4), cg.zeros((4, 1))), ValueError,
     "instance_norm: x is (2, 4, 3) and bias is (4, 1); wanted an element for each of the 4 channels, which are axis "
     "1"),
    (lambda: cg.batch_norm(cg.zeros(X), training=True, momentum=None), TypeError,
     "batch_norm: momentum must be a number, got None"),
    (lambda: cg.instance_norm(cg.zeros((2, 4, 1))), ValueError,
     "instance_norm: x is (2, 4, 1), one element for each channel of a sample; wanted at least two, because their "
     "variance is 0"),
    (lambda: cg.batch_norm(cg.zeros(X), training=True, momentum=float("nan")), ValueError,
     "batch_norm: momentum is nan; wanted a finite number"),
    (lambda: cg.batch_norm(cg.zeros(X), training="no"), TypeError,
     "batch_norm: training must be True, False or None (the mode of the thread), got 'no'"),
    (lambda: cg.batch_norm(cg.zeros(X), *[cg.zeros(4)] * 2, training=True), ValueError,
     "batch_norm: running_var shares memory with running_mean, and train mode writes to it; pass a copy()"),
    (lambda: cg.batch_norm(cg.zeros(X), cg.zeros(4)), ValueError,
     "batch_norm: pass both of running_mean and running_var, or neither"),
    (lambda: cg.batch_norm(cg.zeros(X)), ValueError,
     "batch_norm: in predict mode wanted running_mean and running_var, got None; pass them, or training=True for the "
     "statistics of the batch"),
    (lambda: cg.batch_norm(cg.zeros(X), cg.zeros(4), cg.zeros(3)), ValueError,
     "batch_norm: x is (2, 4, 3) and running_var is (3,); wanted an element for each of the 4 channels, which are "
     "axis 1"),
    (lambda: cg.batch_norm(cg.zeros(X), cg.zeros(4), [1.0] * 4), TypeError,
     "batch_norm: running_var must be a floating-point tensor, got <*>"),
    (lambda: cg.batch_norm(cg.zeros(X), cg.zeros(4).attach_grad(), cg.zeros(4)), ValueError,
     "batch_norm: gradients flow through running_mean; pass a tensor without a graph, such as running_mean.detach()"),
    (lambda: cg.batch_norm(cg.zeros((1, 4)), training=True), ValueError,
     "batch_norm: x is (1, 4), one element for each channel; train mode needs at least two, because their variance is "
     "0"),
    (lambda: cg.batch_norm(cg.zeros(X), cg.zeros(4), cg.ones(4), cg.zeros(3)), ValueError,
     "batch_norm: x is (2, 4, 3) and weight is (3,); wanted an element for each of the 4 channels, which are axis 1"),
]
