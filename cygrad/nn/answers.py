"""Names of torch.nn, of its modules and of their arguments that cygrad.nn does not have, each with a sentence that
names the replacement (cygrad/core/answers.py)."""

import inspect

from cygrad.core.answers import BFLOAT16, CPU, HALF, KEYWORDS, WITHOUT
from cygrad.core.errors import described

# Methods of modules in PyTorch and MXNet.
METHODS = {
    "to": "use astype(dtype); all memory is the CPU's", "cuda": CPU, "cpu": CPU, "float": "use astype(\"float32\")",
    "double": "use astype(\"float64\")", "half": HALF, "bfloat16": BFLOAT16, "type": "use astype(dtype)",
    "collect_params": "use named_parameters()", "get_parameters": "use named_parameters()",
    "register_backward_hook": "use register_full_backward_hook(hook)",
    "compile": "operations run immediately, so there is nothing to compile",
    "hybridize": "operations run immediately, so there is nothing to compile",
    "initialize": "layers are initialized when they are made; cygrad.nn.init has other distributions",
}
# Names of torch.nn.
ONE_CPU = "use one model; all memory is the CPU's"
UNPOOL = "there is no inverse of max_pool; Upsample and ConvTranspose2d enlarge"
NN = {
    "functional": "operators are functions of cygrad, such as cygrad.relu",
    "utils": "the solvers of cygrad.optim have clip_grad_by_global_norm() and clip_grad_by_value()",
    "modules": "layers are in cygrad.nn itself",
    "attention": "use cygrad.scaled_dot_product_attention", "Container": "use Module",
    "Buffer": "call register_buffer(name, tensor) in the module",
    "UninitializedParameter": "pass None as the size of the input; the first call gives it",
    "UninitializedBuffer": "pass None as the size of the input; the first call gives it",
    "LazyLinear": "use Linear(None, out_features), whose first call gives in_features",
    **{f"Lazy{layer}{n}d": f"use {layer}{n}d(None, ...), whose first call gives the number of channels"
       for layer in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for n in (1, 2, 3)},
    "Unflatten": "call reshape() in forward",
    "DataParallel": ONE_CPU, "parallel": ONE_CPU, "DistributedDataParallel": ONE_CPU,
    "SyncBatchNorm": "use BatchNorm2d; all memory is the CPU's",
    "AdaptiveLogSoftmaxWithLoss": "use LinearCrossEntropyLoss, which never stores all scores together",
    "NLLLoss2d": "use NLLLoss, which takes images too",
    "TripletMarginWithDistanceLoss": "use TripletMarginLoss, or write relu(d(a, p) - d(a, n) + margin).mean()",
    "UpsamplingBilinear2d": "use Upsample(mode=\"bilinear\", align_corners=True)",
    "UpsamplingNearest2d": "use Upsample(mode=\"nearest\")",
    "FractionalMaxPool2d": "use MaxPool2d or AdaptiveMaxPool2d", "FractionalMaxPool3d": "use MaxPool3d or "
    "AdaptiveMaxPool3d", "MaxUnpool1d": UNPOOL, "MaxUnpool2d": UNPOOL, "MaxUnpool3d": UNPOOL,
    "CrossMapLRN2d": "use LocalResponseNorm",
    "ChannelShuffle": "use reshape, swapaxes and reshape in forward",
    "LinearCrossEntropyOptions": "LinearCrossEntropyLoss takes chunk=",
    "grad": "use cygrad.autograd.grad", "factory_kwargs": "pass dtype= to each layer",
    "common_types": "there are no such aliases",
    "RNNBase": "use RNN, LSTM or GRU", "RNNCellBase": "use RNNCell, LSTMCell or GRUCell",
    **dict.fromkeys(("intrinsic", "qat", "quantizable", "quantized"), "there is no quantization"),
}
# Arguments of layers.
LAYER = {
    "inplace": "its result is a new tensor; leave it out", "size_average": "use reduction=\"mean\" or \"sum\"",
    "reduce": "use reduction=\"none\" for one loss per element", "norm_type": "there is no max_norm either",
    "_weight": "use Embedding.from_pretrained(weight)",
    "enable_nested_tensor": "there are no nested tensors; leave it out",
    "mask_check": "masks are always checked; leave it out",
}
WITH_INPLACE = "cygrad.nn.activation", "cygrad.nn.dropout"         # the modules whose layers have it in PyTorch


def of_nn(name):
    """The message for an attribute that cygrad.nn does not have."""
    advice = f": {NN[name]}" if name in NN else ""
    return f"module 'cygrad.nn' has no attribute {described(name)}{advice}"


def of_layer(cls, given, named):
    """The message for wrong arguments of the layer `cls`, or None if there are none."""
    code = getattr(cls.__init__, "__code__", None)      # (None: the layer has no __init__)
    if code is not None and code.co_flags & inspect.CO_VARKEYWORDS: return None
    if code is None: most, names = 0, ()
    else: most, names = code.co_argcount - 1, code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    for key in named:
        if key in names: continue
        ours = next((name for name in KEYWORDS.get(key, ()) if name in names), None)
        if ours is not None:
            others = "..., " if given or len(named) > 1 else ""
            return (f"{cls.__name__} takes {ours}, not {key}: {cls.__name__}({others}{ours}="
                    f"{described(named[key])})")
        advice = LAYER.get(key) or WITHOUT.get(key)
        listed = f"; it takes {', '.join(names)}" if names else ""
        return f"{cls.__name__} takes no {key}" + (f": {advice}" if advice else listed)
    if len(given) <= most or code is not None and code.co_flags & inspect.CO_VARARGS: return None
    first, last = ", ".join(names[:most]), names[most:]
    takes = f"{cls.__name__} takes " + (f"only {first} by position" if most else
                                        "its arguments by name" if last else "no arguments")
    if isinstance(given[most], bool) and cls.__module__ in WITH_INPLACE:
        return (f"{takes}: PyTorch's inplace does not exist, its result is a new tensor; write "
                f"{cls.__name__}({', '.join(map(described, given[:most]))})")
    if "reduction" in last:
        value = next((x for x in given if isinstance(x, str)), "mean")
        return f"{takes}: write reduction={described(value)}; PyTorch's size_average and reduce do not exist"
    return takes + (f": pass {', '.join(last)} by name" if last else "")
