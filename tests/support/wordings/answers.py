"""The wording of errors: names and keywords of other libraries."""

import numpy as np

import cygrad as cg


def recording(f):
    """A case that calls `f` with a variable while recording."""
    def run():
        x = cg.tensor([1.0, 2.0]).attach_grad()
        with cg.record(): f(x)
    return run


def freed(f):
    """A case that calls `f` with a tensor that is freed afterwards: NumPy keeps references when a ufunc fails."""
    def run():
        with cg.memory.scope(): f(cg.ones(2))
    return run


CASES = [
    (lambda: cg.sum(cg.ones(2, 3), dim=1), TypeError, "sum takes axis, not dim: sum(x, axis=...)"),
    (lambda: cg.ones(2, 3).mean(1, keepdim=True), TypeError,
     "mean takes keepdims, not keepdim: mean(x, keepdims=True)"),
    (lambda: cg.concat([cg.ones(2)], dim=0), TypeError, "concat takes axis, not dim: concat(xs, axis=...)"),
    (lambda: cg.ones(2, 3).std(unbiased=True), TypeError,
     "std takes correction, not unbiased: std(x, correction=1), where the divisor is n - correction"),
    (lambda: cg.exp(input=cg.ones(2)), TypeError, "exp takes x, not input: exp(x)"),
    (lambda: cg.ones(2, device="cuda"), TypeError,
     "ones takes no device: all memory is the CPU's; leave it out"),
    (lambda: cg.sum(cg.ones(2), spam=1), TypeError, "sum takes no spam; it takes x, axis, keepdims"),
    (lambda: cg.ones(2).backward(gradients=1), TypeError, "backward takes gradient, not gradients: backward(gradient)"),
    (lambda: cg.autograd.grad(cg.ones(2), cg.ones(2), grad_outputs=1), TypeError,
     "grad takes gradients, not grad_outputs: grad(outputs, gradients)"),
    (lambda: cg.randn(2), AttributeError, "module 'cygrad' has no attribute 'randn': use random.normal(shape)"),
    (lambda: cg.spam, AttributeError, "module 'cygrad' has no attribute 'spam'"),
    (lambda: cg.memory.events(3), TypeError,
     "memory.events takes a function, which it calls with each event; got 3"),
    (lambda: cg.ones(2).mean(dtype="float64"), TypeError, "mean takes no dtype: cast with astype(dtype)"),
    (lambda: np.frompyfunc(abs, 1, 1)(cg.ones(2)), TypeError,
     "the ufunc abs (vectorized) does not take a tensor: pass x.detach().numpy() for an array without a gradient"),
    (recording(lambda x: np.convolve(x, x)), TypeError,
     "numpy.convolve does not take a tensor: call numpy.convolve(x.detach().numpy()) for an array without a gradient"),
    (lambda: np.sum(cg.ones(2), out=cg.ones(2)), ValueError, "numpy.sum: out has shape (2,); it must be ()"),
    (freed(lambda x: np.add(x, 1, out=cg.ones(1))), ValueError, "numpy.add: out has shape (1,); it must be (2,)"),
    (freed(lambda x: np.divmod(x, 2, out=(cg.ones(2), np.ones(2)))), TypeError,
     "numpy.divmod: out must be a tensor, got a float64 array of shape (2,)"),
    (freed(lambda x: np.exp(x, where=[True, False])), TypeError,
     "numpy.exp of a tensor takes where only with out, because the other elements have no value: pass out, or call "
     "cygrad.where(mask, exp(...), other)"),
    (freed(lambda x: np.exp(x, order="F")), TypeError,
     "numpy.exp of a tensor takes no order='F': leave it out, or call numpy.exp(x.detach().numpy(), ...) for an array "
     "without a gradient"),
    (lambda: np.unique(cg.ones(2), axis=0), TypeError,
     "numpy.unique of a tensor takes no axis=0: leave it out, or call numpy.unique(x.detach().numpy(), ...) for an "
     "array without a gradient"),
    (lambda: np.max(cg.ones(2), where=[True, False]), TypeError,
     "numpy.max of a tensor takes no where: leave it out, or call numpy.max(x.detach().numpy(), ...) for an array "
     "without a gradient"),
    (freed(lambda x: np.add(x, 1, dtype="int64")), TypeError,
     "numpy.add of a tensor: float32 may not become int64 with casting='same_kind'"),
    (recording(lambda x: cg.tensor([x[0] * 2, x[1]])), RuntimeError,
     "a list of tensors that gradients flow through, while recording: the gradients would be lost silently; use "
     "detach() first, or call cygrad.stack(xs), which is recorded"),
    (recording(lambda x: cg.asarray([[x[0], x[1]]])), RuntimeError,
     "a list of tensors that gradients flow through, while recording: the gradients would be lost silently; use "
     "detach() first, or call cygrad.stack(xs) with each list, which is recorded"),
    (lambda: cg.linalg.trace(cg.ones((2, 2)), axis1=0), TypeError, "trace takes no axis1; it takes x, offset, dtype"),
    (lambda: cg.linalg.norm(cg.ones(2), p=1), TypeError, "linalg.norm takes ord, not p: norm(x, ord)"),
    (lambda: cg.softmax(cg.ones(2), out=1), TypeError, "softmax takes no out: its result is a new tensor"),
    (freed(lambda x: np.add.at(x, [0], 1)), TypeError,
     "numpy.add.at does not take a tensor: call cygrad.index_add(x, axis, indices, y), or "
     "numpy.add.at(x.detach().numpy()) for an array without a gradient"),
    (lambda: np.ldexp(np.ones(2), cg.ones(2)), TypeError,
     "numpy.ldexp does not take a tensor: call numpy.ldexp(x.detach().numpy(), y.detach().numpy()) for "
     "an array without a gradient"),
    (lambda: cg.ones(2).view(1, 2), AttributeError,
     "a tensor has no view: use reshape(), which is a view where the strides allow, or astype(dtype)"),
    (lambda: cg.relu(cg.ones(2), True), TypeError,
     "relu takes x, got 2 positional arguments: PyTorch's inplace does not exist, its result is a new tensor; leave it "
     "out"),
    (lambda: cg.elu(cg.ones(2), 1.0, True), TypeError,
     "elu takes x, alpha, got 3 positional arguments: PyTorch's inplace does not exist, its result is a new tensor; "
     "leave it out"),
    (lambda: cg.ones(2).exp(1, 2), TypeError, "exp takes x, got 3 positional arguments"),
    (lambda: cg.ones(2).nelement(), AttributeError, "a tensor has no nelement: use size"),
    (lambda: cg.ones(2).outer(cg.ones(2)), AttributeError, "a tensor has no outer: use cygrad.outer(x, ...)"),
    (lambda: cg.ones(2).clamp_(0, 1), AttributeError,
     "a tensor has no clamp_: x[...] = x.clamp(...) writes in place"),
    (lambda: cg.dropout(cg.ones(2), 0.5, training=True), TypeError,
     "dropout takes no training: the mode of the thread decides; write `with cygrad.train_mode():` or `with "
     "cygrad.predict_mode():` around the call"),
    (lambda: cg.dropout(cg.ones(2), 0.5, True), TypeError,
     "dropout: the argument after p is a generator, and not PyTorch's training: the mode of the thread decides; write "
     "`with cygrad.train_mode():` or `with cygrad.predict_mode():` around the call"),
    (lambda: cg.ones(2).asnumpy(), AttributeError,
     "a tensor has no asnumpy: use numpy(), which shares memory, or numpy().copy()"),
    (lambda: setattr(cg.ones(2), "data", 3), AttributeError,
     "a tensor has no data: use detach(), which shares memory, numpy(), or copy_(value) to write"),
    (lambda: cg.zeros((2, 3), 4), TypeError,
     "zeros takes a shape (a tuple or integers) and then a dtype; got ((2, 3), 4)"),
    (lambda: cg.ones(2, 3, 4).transpose(-1, -2), ValueError,
     "transpose: axes (-1, -2) must contain each of the 3 dimensions once; swapaxes(-1, -2) exchanges two"),
    (lambda: cg.ones(2).mT, ValueError, "mT needs a tensor with at least 2 dimensions, got shape (2,)"),
    (lambda: cg.ones(2, 3).flatten(1, 0), ValueError,
     "flatten: axis 1 comes after axis 0 in a tensor of shape (2, 3)"),
]
