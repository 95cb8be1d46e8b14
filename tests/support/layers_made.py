"""How layers.py and layers_nets.py make a layer of cygrad.nn for a module of PyTorch with its sample inputs."""

import cygrad as cg
from cygrad import nn
from modules import Module

RENAMED = {"dim": "axis", "dtype": None, "device": None}    # arguments of PyTorch: ours; None: left out


def made(m, cls, first=(), without=()):
    """The layer of class `cls` for PyTorch's module `m`: the same arguments, state and mode."""
    import torch

    def converted(v):
        if isinstance(v, torch.nn.TransformerEncoderLayer): return block(v)
        if callable(v): return getattr(cg, v.__name__)          # an activation
        return cg.tensor(v.numpy(force=True)) if isinstance(v, torch.Tensor) else v

    args, kwargs = m.made_with
    named = {RENAMED.get(name, name): converted(v) for name, v in kwargs.items()
             if RENAMED.get(name, name) and name not in without}
    default = cg.get_default_dtype()
    cg.set_default_dtype("float64")
    try:
        layer = cls(*first, *map(converted, args), **named)
    finally:
        cg.set_default_dtype(default)
    layer.load_state_dict({name: x.numpy(force=True) for name, x in m.state_dict().items()})
    return layer.train(m.training)


def block(m):
    """The layer of a TransformerEncoder, with the same structure; it is copied, and gets the encoder's state."""
    return nn.TransformerEncoderLayer(
        m.self_attn.embed_dim, m.self_attn.num_heads, m.linear1.out_features, m.dropout.p,
        getattr(cg, m.activation.__name__), batch_first=m.self_attn.batch_first, norm_first=m.norm_first,
        bias=m.linear1.bias is not None)


def holding(layer, tensors):
    """The layer with these tensors, by path, as its parameters and buffers."""
    for path, x in tensors.items():
        where, _, name = path.rpartition(".")
        setattr(layer.get_submodule(where), name, x)
    return layer


def layer(name, ours=None, theirs=None, call=None, check=None, second=True, first=(), without=()):
    """The comparison of the module `name` with cygrad.nn's class of the same name, or of the name `ours`. `call`(layer,
    *inputs) calls it, `theirs`(m, *inputs) PyTorch's. `check`(m, *inputs) refuses samples. `first`: arguments of cygrad
    before PyTorch's; `without`: arguments of PyTorch that cygrad does not have."""
    def compute(m, p, *inputs, **named):
        if check is not None: check(m, *inputs)
        found = holding(made(m, getattr(nn, ours or name), first, without), p)
        if "input" in named: inputs = named.pop("input"), *inputs       # (Linear's first sample)
        with (cg.train_mode if m.training else cg.predict_mode)():
            return call(found, *inputs, **named) if call else found(*inputs, **named)
    return Module(name, compute, *([theirs] if theirs else []), second=second)
