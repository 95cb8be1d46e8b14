"""For rows of the table, functions of PyTorch that take the arguments of the row's function. tests/properties/
test_table_torch.py compares their results, benchmarks/sweep.py their times."""

import itertools
from functools import partial

import numpy as np

import cygrad as cg


def torch_counterparts(torch):
    f = torch.nn.functional
    def dims(x, axis):
        return list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)

    def wide(x, mask):
        return mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)).expand(x.shape)

    def expand_dims(x, axis):
        for d in sorted(a % (x.ndim + len(axis)) for a in axis) if isinstance(axis, tuple) else [axis]:
            x = x.unsqueeze(d)
        return x

    def torch_scatter_add(x, axis, index, src):
        return x.scatter_add(axis, index % max(x.shape[axis], 1), src[tuple(map(slice, index.shape))])


    def attention(q, k, v, mask=None, is_causal=False, **kwargs):
        if is_causal and mask is not None:          # (PyTorch takes one of them)
            causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
            mask = mask & causal if mask.dtype == torch.bool else mask.masked_fill(~causal, -torch.inf)
            is_causal = False
        if q.numel() == 0 or v.numel() == 0:        # (PyTorch does not record what is empty)
            return torch.softmax(q @ k.mT, -1) @ v
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return f.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal, **kwargs)

    same = {name: getattr(torch, name) for name in (
        "add sub mul div neg abs sign floor ceil trunc round pow square sqrt rsqrt reciprocal exp expm1 log log1p sin "
        "cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid relu isnan isinf isfinite "
        "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not where matmul").split()}
    same |= {"less": torch.lt, "less_equal": torch.le, "equal": torch.eq, "not_equal": torch.ne, "greater": torch.gt,
             "greater_equal": torch.ge, "power": torch.pow, "silu": f.silu, "softplus": f.softplus, "gelu": f.gelu,
             "cross_entropy": weighted(torch, f.cross_entropy),
             "soft_cross_entropy": weighted(torch, f.cross_entropy), "nll_loss": weighted(torch, f.nll_loss),
             "linear_cross_entropy": lambda x, w, target, b=None, chunk=None, **kwargs: f.cross_entropy(
                 f.linear(x, w, b).reshape(-1, len(w)) if x.ndim > 1 else f.linear(x, w, b), target.reshape(-1)
                 if x.ndim > 1 else target, **kwargs).reshape(target.shape if "none" in kwargs.values() else ())}

    def of_tensors(like, dtype=None):
        return lambda x, y: like(x, torch.as_tensor(y, dtype=dtype))

    same |= {name: getattr(torch.linalg, name) for name in "inv svdvals".split()}
    same |= {name: of_tensors(getattr(torch, name), torch.float64) for name in ("maximum", "minimum")}
    same |= {name: of_tensors(getattr(torch, name)) for name in ("logical_and", "logical_or", "logical_xor")}
    same |= {name: getattr(f, name) for name in (
        "leaky_relu threshold hardtanh hardswish elu selu celu softsign logsigmoid mish prelu").split()}
    return same | {
        "layer_norm": lambda x, w=None, b=None, eps=1e-5: f.layer_norm(
            x, x.shape[-1:] if w is None else w.shape, w, b, eps),
        "rms_norm": lambda x, w=None, eps=None: f.rms_norm(x, x.shape[-1:] if w is None else w.shape, w, eps),
        "group_norm": f.group_norm,
        "instance_norm": lambda x, w=None, b=None, eps=1e-5: f.group_norm(x, x.shape[1], w, b, eps),
        "batch_norm": lambda x, w=None, b=None, eps=1e-5: f.batch_norm(x, None, None, w, b, True, eps=eps),
        "batch_norm_predict": lambda x, m, v, w=None, b=None, eps=1e-5: f.batch_norm(
            x, x.new_tensor(m), x.new_tensor(v), w, b, eps=eps),
        "glu": lambda x, axis=-1: f.glu(x, axis),
        "hardsigmoid": lambda x: f.relu6(x + 3) / 6,            # its own has no second derivative
        "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"),
        "linear": lambda x, w, b=None, activation=None: (
            getattr(torch, activation) if activation else torch.clone)(f.linear(x, w, b)),
        **{name: with_activation(torch, getattr(f, name)) for kind in ("conv", "conv_transpose")
           for name in (f"{kind}1d", f"{kind}2d", f"{kind}3d")},
        "conv_weight": lambda x, y, size, stride, low, dilation, groups=1: getattr(
            torch.nn.grad, f"conv{len(size)}d_weight")(x, (y.shape[1], x.shape[1] // groups, *size), y, stride, low,
                                                       dilation, groups),
        **{name: getattr(f, name) for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for d in (1, 2, 3)
           for name in (f"{kind}_pool{d}d",)},
        "unfold": f.unfold, "fold": f.fold, "interpolate": f.interpolate,
        "clip": lambda x, min=None, max=None: x * 1 if min is max is None else torch.clamp(x, min, max),
        "sum": lambda x, axis=None, keepdims=False: torch.sum(x, axis, keepdim=keepdims),
        "mean": lambda x, axis=None, keepdims=False: torch.mean(x, axis, keepdim=keepdims),
        "reshape": torch.reshape,
        "permute": torch.permute, "flip": lambda x, axis=None: torch.flip(x, dims(x, axis)),
        "squeeze": lambda x, axis=None: torch.squeeze(x) if axis is None else torch.squeeze(x, axis),
        "expand_dims": expand_dims,
        "concat": lambda *xs, axis=0: torch.cat([x.ravel() for x in xs] if axis is None else xs, axis or 0),
        "stack": lambda *xs, axis=0: torch.stack(xs, axis),
        "split": lambda x, sections, axis=0: torch.tensor_split(x, sections, axis)[1],
        "pad": lambda x, widths, value=0: f.pad(x, [
            int(n) for pair in np.broadcast_to(widths, (x.ndim, 2))[::-1] for n in pair], value=value),
        "tril": torch.tril, "triu": torch.triu,
        "take": lambda x, i, axis=None: (
            torch.take(x, i) if axis is None else x[(slice(None),) * (axis % x.ndim) + (i,)]),
        "gather": lambda x, axis, i: torch.gather(x, axis, i % x.shape[axis]), "scatter_add": torch_scatter_add,
        "select": lambda x, mask: x[mask], "mask_put": lambda x, v, mask: x.clone().masked_scatter(wide(x, mask), v),
        "add_at": lambda x, axis, v, i: x.index_add(axis, i % x.shape[axis], v),
        "argwhere": torch.argwhere,
        "one_hot": lambda labels, n, dtype: f.one_hot(labels, n).to(getattr(torch, dtype)),
        "sort": lambda x, axis=-1, descending=False: torch.sort(x, axis, descending)[0],
        "argsort": lambda x, axis=-1, descending=False: torch.argsort(x, dim=axis, descending=descending, stable=True),
        "topk": lambda x, k, axis=-1, largest=True: torch.argsort(
            x, dim=axis, descending=largest, stable=True).narrow(axis, 0, k),
        "einsum": lambda x, y, equation: torch.einsum(equation, x, y),
        "transpose": lambda x, axes=None: x.permute(axes or tuple(range(x.ndim - 1, -1, -1))),
        "broadcast_to": torch.broadcast_to,
        "getitem": lambda x, index: None if has_negative_step(index) else x[index],
        "astype": lambda x, dtype: x.to(getattr(torch, dtype)),
        "log_softmax": lambda x, axis=-1: f.log_softmax(x, axis),
        "softmax": lambda x, axis=-1: f.softmax(x, axis),
        "logsumexp": lambda x, axis=None, keepdims=False: torch.logsumexp(x, every(x, axis), keepdims),
        "prod": product_of,
        "any": lambda x, axis=None, keepdims=False: x.bool().any(every(x, axis), keepdims) if x.ndim else x.bool(),
        "all": lambda x, axis=None, keepdims=False: x.bool().all(every(x, axis), keepdims) if x.ndim else x.bool(),
        "var": lambda x, axis=None, keepdims=False, correction=0: torch.var(x, axis, correction=correction,
                                                                            keepdim=keepdims),
        "std": lambda x, axis=None, keepdims=False, correction=0: torch.std(x, axis, correction=correction,
                                                                            keepdim=keepdims),
        "norm": torch.linalg.vector_norm,
        "max": lambda x, axis=None, keepdims=False: torch.amax(x, every(x, axis), keepdims),
        "min": lambda x, axis=None, keepdims=False: torch.amin(x, every(x, axis), keepdims),
        "argmax": lambda x, axis=None, keepdims=False: torch.argmax(x, axis, keepdims),
        "argmin": lambda x, axis=None, keepdims=False: torch.argmin(x, axis, keepdims),
        "cumsum": lambda x, axis=None: torch.cumsum(x.reshape(-1) if axis is None else x, axis or 0),
        "embedding": lambda i, w: f.embedding(i % max(len(w), 1), w), "embedding_bag": partial(bags_of, torch),
        "cumprod": lambda x, axis=None: torch.cumprod(x.reshape(-1) if axis is None else x, axis or 0),
        "cummax": lambda x, axis=None: torch.cummax(x.reshape(-1) if axis is None else x, axis or 0)[1],
        "cummin": lambda x, axis=None: torch.cummin(x.reshape(-1) if axis is None else x, axis or 0)[1],
        "mse": lambda x, y, reduction="mean": reduced(torch, (x - y) ** 2, reduction),
        "bce_with_logits": f.binary_cross_entropy_with_logits,
        "scaled_dot_product_attention": attention,
    } | decompositions(torch) | {name: getattr(f, name) for name in (
        "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "gaussian_nll_loss", "poisson_nll_loss")}


def decompositions(torch):
    """Vectors with the signs that cygrad's have."""
    on = torch.linalg

    def vector(ys):
        return torch.cat([y.reshape(-1) for y in ys])

    def turned(theirs, ours):
        dots = (theirs.detach() * torch.tensor(ours.numpy())).sum(-2, keepdim=True)
        return torch.where(dots < 0, -1.0, 1.0)

    def svd(x):
        u, s, vh = on.svd(x, full_matrices=False)
        sign = turned(u, cg.svd(x.detach().numpy(), False).U)
        return vector([u * sign, s, vh * sign.mT])

    def eigh(x, UPLO="L"):
        w, v = on.eigh(x + x.mT, UPLO)
        return vector([w, v * turned(v, cg.eigh((x + x.mT).detach().numpy(), UPLO).eigenvectors)])

    def gaps(w, singular=False, zero=True, general=False):
        w = w * w if singular else w
        eye = torch.eye(w.shape[-1], dtype=w.dtype)
        return (1 - eye) / (w.unsqueeze(-2) - w.unsqueeze(-1) + eye)

    def eig(x):
        w, v = (y.real for y in on.eig(x))
        return vector([w, v * turned(v, cg.eig(x.detach().numpy()).eigenvectors)])

    return {
        "eig": eig, "eigvals": lambda x: on.eigvals(x).real, "expm": on.matrix_exp,
        "cholesky": lambda x, upper=False: on.cholesky(x + x.mT, upper=upper),
        "solve": lambda x, b: on.solve(x, b), "qr": lambda x, mode="reduced": vector(on.qr(x, mode)),
        "solve_triangular": on.solve_triangular, "svd": svd, "eigh": eigh, "spectral_gaps": gaps,
        "eigvalsh": lambda x, UPLO="L": on.eigvalsh(x + x.mT, UPLO),
        "pinv": lambda x, rtol=None: on.pinv(x, rtol=rtol), "lstsq": lambda x, b: on.pinv(x) @ b,
        "slogdet": lambda x: torch.stack(on.slogdet(x)),
        "det": lambda x: on.slogdet(x)[0] * torch.exp(on.slogdet(x)[1]),    # (its own has no second one at (1, 1))
        "diagonal": lambda x, offset=0, axis1=0, axis2=1: torch.diagonal(
            x, offset, axis1, axis2),
        "diag": torch.diag,
        "cofactor": lambda x: on.det(x)[..., None, None] * on.inv(x).mT,
    }


def weighted(torch, f):
    """A loss whose weight is an array."""
    return lambda *xs, weight=None, **kwargs: f(*xs, weight if weight is None else torch.tensor(weight), **kwargs)


def every(x, axis):
    """Some of PyTorch's reductions need all axes as arguments."""
    return tuple(range(x.ndim)) if axis is None else axis


def with_activation(torch, like):
    def call(*args, activation=None, **kwargs):
        y = like(*args, **kwargs)
        return getattr(torch, activation)(y) if activation else y
    return call


def reduced(torch, values, reduction):
    return values if reduction == "none" else getattr(torch, reduction)(values)


def product_of(x, axis=None, keepdims=False):
    """PyTorch computes the product along one axis at a time."""
    axes = every(x, axis)
    for d in sorted([axes] if isinstance(axes, int) else axes, reverse=True):
        x = x.prod(d, keepdim=keepdims)
    return x


def bags_of(torch, indices, weight, offsets=None, scale=None, mode="mean", padding_idx=None):
    """PyTorch's embedding_bag has no second derivative, so this is made of its other functions."""
    rows, flat = len(weight), indices.reshape(-1) % len(weight)
    starts = offsets.tolist() if offsets is not None else [b * indices.shape[1] for b in range(len(indices))]
    out = []
    for a, b in itertools.pairwise([*starts, len(flat)]):
        chosen = [j for j in range(a, b) if padding_idx is None or flat[j] != padding_idx % rows]
        picked = weight[flat[chosen]]
        if scale is not None:
            picked = picked * scale.reshape(-1)[chosen][:, None]
        y = picked.sum(0)
        if mode == "mean":
            y = y / max(len(chosen), 1)
        out.append((picked.max(0).values if mode == "max" and chosen else y)[None])
    return torch.cat([weight[:0], *out])


def has_negative_step(index):
    entries = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, slice) and i.step is not None and i.step < 0 for i in entries)
