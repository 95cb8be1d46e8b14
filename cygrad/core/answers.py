"""Names of PyTorch, MXNet, nnabla and NumPy that cygrad does not have, each with a sentence that names the replacement.
Names with the same meaning everywhere are accepted as aliases and are not listed here.

A successful call or attribute access never runs this code. include/cygrad/answers.h calls it for an unknown keyword of
a compiled function. An attribute is a descriptor on the class that raises AttributeError, so hasattr() returns False
and getattr() returns its default."""

import inspect
import sys

from cygrad.core.errors import described

# A keyword of another library: cygrad's names for it. The one that the function takes is the replacement.
KEYWORDS = {
    "dim": ("axis", "axes"), "dims": ("axis", "axes", "shape"), "keepdim": ("keepdims",), "ddof": ("correction",),
    "unbiased": ("correction",), "start_dim": ("start",), "end_dim": ("end",), "dim0": ("axis1",), "dim1": ("axis2",),
    "input": ("x", "indices"), "a": ("x",), "self": ("x",), "other": ("y",), "tensors": ("xs",), "arrays": ("xs",),
    "size": ("shape",), "newshape": ("shape",), "repeats": ("shape",), "exponent": ("p",), "a_min": ("min",),
    "a_max": ("max",), "target": ("y", "targets", "labels"), "label": ("labels",), "pad_width": ("widths",),
    "diagonal": ("k",), "num_classes": ("classes",), "split_size_or_sections": ("sections",),
    "indices_or_sections": ("sections",), "fill_value": ("value",), "obj": ("data",), "object": ("data",),
    "source_array": ("data",), "grad_tensors": ("gradients",), "head_grads": ("gradients",),
    "grad_outputs": ("gradients",), "grad": ("gradients", "gradient"), "out_grad": ("gradient",),
    "grad_tensor": ("gradient",), "head_grad": ("gradient",), "clear_buffer": ("retain_graph",),
    "gradients": ("gradient",), "gradient": ("gradients",), "ord": ("p",), "p": ("ord",),
}
# Functions of NumPy that have another name here, and functions of the same name that do something else.
NUMPY = {"dot": "matmul", "vdot": "vecdot", "amax": "max", "amin": "min", "around": "round"}
OTHER = {"save", "load"}
REFUSED = "does not take a tensor"
EXAMPLES = {"axis": "...", "axes": (1, 0), "keepdims": True, "correction": 1, "start": 1, "end": -1, "shape": (2, 3),
            "k": 1, "sections": 2, "retain_graph": True}
# A keyword of another library that has no counterpart here.
WITHOUT = {
    "device": "all memory is the CPU's; leave it out", "ctx": "all memory is the CPU's; leave it out",
    "context": "all memory is the CPU's; leave it out", "requires_grad": "call requires_grad_() on the result",
    "inplace": "x[...] = value writes in place", "set_to_none": "x.grad = None does that",
    "out": "its result is a new tensor", "dtype": "cast with astype(dtype)",
    "where": "select elements with x[mask]", "initial": "add it to the result", "order": "the order is row-major",
    "max_norm": "scale rows of the weight in place before the call",
    "scale_grad_by_freq": "GradientSlice.deduplicate(\"mean\") divides by the frequency",
    "params": "call set_parameters() on the solver", "pin_memory": "leave it out", "layout": "leave it out",
}
MEANING = {"ddof": ", where the divisor is n - correction", "unbiased": ", where the divisor is n - correction",
           "split_size_or_sections": ", the number of parts, where PyTorch takes their size"}
# Arguments of solvers in PyTorch and MXNet.
FUSED = "leave it out; every update is fused"
SOLVER = {
    "parameters": "pass them first, {0}(parameters, lr=0.01), or call set_parameters(parameters)",
    "betas": "its rule has no beta1 and beta2",
    "momentum": "use Momentum(lr, momentum), in which v contains the learning rate, SgdW, Nesterov or RMSpropGraves",
    "nesterov": "use Nesterov(lr, momentum)",
    "dampening": "there is none; use Momentum(lr, momentum)",
    "amsgrad": "use AMSGRAD(alpha, bias_correction=True), whose eps is outside the bias correction",
    "rho": "use decay",
    "alpha": "the learning rate is called lr, and PyTorch's alpha of RMSprop is decay",
    "centered": "use RMSpropGraves",
    "lr_decay": "call set_learning_rate(lr) before update()",
    "initial_accumulator_value": "set the states with set_states()",
    "maximize": "differentiate the negative loss",
    "foreach": FUSED, "fused": FUSED, "capturable": FUSED,
    "differentiable": "updates are not recorded",
    "wd": "use weight_decay, as in PyTorch, or call weight_decay(rate) before update()",
    "learning_rate": "it is called lr",
    "rescale_grad": "call scale_grad(scale) before update()",
    "clip_gradient": "call clip_grad_by_value(clip_value) before update()",
    "lr_scheduler": "create a schedule, such as StepLR(solver, 30), and call its step()",
}
# Arguments of learning-rate schedules in PyTorch.
SCHEDULE = {
    "last_epoch": "call step(epoch) on the schedule, or load_state_dict(state) to resume",
    "verbose": "print get_last_lr() after step()", "optimizer": "pass the solver first, or as solver=",
    "base_momentum": "the momentum of a solver is fixed", "max_momentum": "the momentum of a solver is fixed",
    "scale_fn": "use LambdaLR", "scale_mode": "use LambdaLR",
}
CPU = "all memory is the CPU's; leave it out"
HALF, BFLOAT16 = (f"there is no {name}; use astype(\"float32\")" for name in ("float16", "bfloat16"))
IN_PLACE = "x {0}= y writes in place"
TENSOR = {
    "view": "use reshape(), which is a view where the strides allow, or astype(dtype)",
    "view_as": "use reshape(y.shape)",
    "to": "use astype(dtype); " + CPU, "type": "use dtype, or astype(dtype) to cast", "type_as": "use astype(y.dtype)",
    "cuda": CPU, "xpu": CPU, "is_cuda": CPU, "device": CPU, "ctx": CPU, "context": CPU, "as_in_context": CPU,
    "as_in_ctx": CPU, "pin_memory": CPU,
    "half": HALF, "bfloat16": BFLOAT16,
    "int": "use astype(\"int32\")", "long": "use astype(\"int64\")", "bool": "use astype(\"bool\")",
    "data": "use detach(), which shares memory, numpy(), or copy_(value) to write",
    "asnumpy": "use numpy(), which shares memory, or numpy().copy()", "asscalar": "use item()",
    "d": "use numpy(), and copy_(value) to write", "g": "use grad", "need_grad": "use requires_grad",
    "forward": "operations run immediately, so there is nothing to start", "numel": "use size", "dim": "use ndim",
    "ndimension": "use ndim", "element_size": "use itemsize", "t": "use T", "H": "use T", "mH": "use mT",
    "expand": "use broadcast_to(shape)", "expand_as": "use broadcast_to(y.shape)",
    "broadcast_like": "use broadcast_to(y.shape)",
    "repeat": "use cygrad.tile(x, shape), or cygrad.repeat(x, n, axis), which repeats each element as NumPy does",
    "tile": "use cygrad.tile(x, shape)",
    "contiguous": "reshape() copies where necessary; copy() is contiguous", "is_contiguous": "copy() is contiguous",
    "mm": "use x @ y", "bmm": "use x @ y", "dot": "use x @ y", "mv": "use x @ y", "eq": "use x == y",
    "ne": "use x != y", "lt": "use x < y", "le": "use x <= y", "gt": "use x > y", "ge": "use x >= y",
    "masked_fill": "use cygrad.masked_fill(x, mask, value)", "masked_fill_": "use x[mask] = value",
    "nonzero": "use cygrad.nonzero(x), a tuple as in NumPy, or cygrad.argwhere(x)",
    "index_select": "use take(indices, axis)", "chunk": "use split(n, axis), whose parts are equal",
    "zero_": "use fill_(0)", "add_": IN_PLACE.format("+"), "sub_": IN_PLACE.format("-"), "mul_": IN_PLACE.format("*"),
    "div_": IN_PLACE.format("/"), "detach_": "use detach()", "new_zeros": "use cygrad.zeros(shape, dtype=x.dtype)",
    "new_ones": "use cygrad.ones(shape, dtype=x.dtype)", "new_tensor": "use cygrad.tensor(data, dtype=x.dtype)",
}
MODULE = {
    "randn": "use random.normal(shape)", "rand": "use random.uniform(shape)", "manual_seed": "use random.seed(n)",
    "randint": "use random.integers(low, high, shape)", "randperm": "use random.permutation(n)",
    "mm": "use x @ y", "bmm": "use x @ y", "dot": "use x @ y", "mv": "use x @ y",
    "cat": "use concat(xs, axis)",
    "newaxis": "use None", "SGD": "use optim.SGD", "Adam": "use optim.Adam", "device": CPU, "cuda": CPU,
    "inference_mode": "use no_grad()",
    "float": "use float32", "double": "use float64", "half": "there is no float16; use float32", "long": "use int64",
    "int": "use int32", "functional": "operators are functions of cygrad",
}
# Methods of modules in PyTorch and MXNet.
METHODS = {
    "to": "use astype(dtype); all memory is the CPU's", "cuda": CPU, "cpu": CPU, "float": "use astype(\"float32\")",
    "double": "use astype(\"float64\")", "half": HALF, "bfloat16": BFLOAT16, "type": "use astype(dtype)",
    "collect_params": "use named_parameters()", "get_parameters": "use named_parameters()",
    "register_full_backward_hook": "use register_hook() of a tensor, such as the result, in a forward hook",
    "compile": "operations run immediately, so there is nothing to compile",
    "hybridize": "operations run immediately, so there is nothing to compile",
    "initialize": "layers are initialized when they are made; cygrad.nn.init has other distributions",
}
# Names of torch.nn.
SETATTR = "assign each parameter to an attribute, setattr(self, f\"w{i}\", nn.Parameter(data))"
STACK = "use Sequential of TransformerBlock"
DECODER = "write a Module with MultiheadAttention and LayerNorm; TransformerBlock(causal=True) has self-attention only"
ONE_CPU = "use one model; all memory is the CPU's"
UNPOOL = "there is no inverse of max_pool; Upsample and ConvTranspose2d enlarge"
NN = {
    "functional": "operators are functions of cygrad, such as cygrad.relu",
    "utils": "the solvers of cygrad.optim have clip_grad_by_global_norm() and clip_grad_by_value()",
    "modules": "layers are in cygrad.nn itself",
    "attention": "use cygrad.scaled_dot_product_attention", "Container": "use Module",
    "Buffer": "call register_buffer(name, tensor) in the module",
    "ParameterList": SETATTR, "ParameterDict": SETATTR,
    "UninitializedParameter": "pass None as the size of the input; the first call gives it",
    "UninitializedBuffer": "pass None as the size of the input; the first call gives it",
    "LazyLinear": "use Linear(None, out_features), whose first call gives in_features",
    **{f"Lazy{layer}{n}d": f"use {layer}{n}d(None, ...), whose first call gives the number of channels"
       for layer in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for n in (1, 2, 3)},
    "Unflatten": "call reshape() in forward",
    "TransformerEncoder": STACK, "TransformerDecoder": DECODER, "TransformerDecoderLayer": DECODER,
    "Transformer": STACK + " for the encoder; there is no decoder",
    "DataParallel": ONE_CPU, "parallel": ONE_CPU, "DistributedDataParallel": ONE_CPU,
    "SyncBatchNorm": "use BatchNorm2d; all memory is the CPU's",
    "AlphaDropout": "use Dropout, which does not keep the mean and variance",
    "FeatureAlphaDropout": "use Dropout1d, Dropout2d or Dropout3d, which do not keep the mean and variance",
    "RReLU": "use LeakyReLU, whose slope is not random, or PReLU, which learns it",
    "AdaptiveLogSoftmaxWithLoss": "use LinearCrossEntropyLoss, which never stores all scores together",
    "NLLLoss2d": "use NLLLoss, which takes images too",
    "TripletMarginWithDistanceLoss": "use TripletMarginLoss, or write relu(d(a, p) - d(a, n) + margin).mean()",
    "UpsamplingBilinear2d": "use Upsample(mode=\"bilinear\", align_corners=True)",
    "UpsamplingNearest2d": "use Upsample(mode=\"nearest\")",
    "FractionalMaxPool2d": "use MaxPool2d or AdaptiveMaxPool2d", "FractionalMaxPool3d": "use MaxPool3d or "
    "AdaptiveMaxPool3d", "MaxUnpool1d": UNPOOL, "MaxUnpool2d": UNPOOL, "MaxUnpool3d": UNPOOL,
    "LocalResponseNorm": "use GroupNorm or BatchNorm2d", "CrossMapLRN2d": "use GroupNorm or BatchNorm2d",
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
}
WITH_INPLACE = "cygrad.nn.activation", "cygrad.nn.dropout"         # the modules whose layers have it in PyTorch
# Attributes of solvers. They are no descriptors, since a subclass in Python may have attributes of these names.
SOLVERS = {
    "setup": "use set_parameters()", "set_learning_rates": "use set_learning_rate(rate)",
    "state": "use get_states(), or state_dict()",
    "defaults": "its settings are attributes, such as lr, and param_groups has those of groups",
    "params": "use get_parameters()", "parameters": "use get_parameters()",
    "register_step_pre_hook": "pass update(update_pre_hook)", "register_step_post_hook": "pass update(None, hook)",
    "create_state": "set_parameters() creates the states",
    **{name: SOLVER[name] for name in ("lr_scheduler", "rescale_grad", "clip_gradient")},
}
# Names of torch.optim and mxnet.optimizer.
OPTIM = {
    "lr_scheduler": "the schedules are in cygrad.optim itself, such as cygrad.optim.StepLR",
    "Optimizer": "the base class is Solver", "_LRScheduler": "use LRScheduler",
    "NAdam": "the nearest is Adam, without Nesterov's step",
    "RAdam": "the nearest is AdaBelief(rectify=True), which has its rectification, or Adam with LinearLR",
    "SparseAdam": "use Adam, which takes row-sparse gradients",
    "LBFGS": "no solver has a line search; the nearest is scipy.optimize.minimize, with gradients from cygrad",
    "ASGD": "the nearest is Sgd; average the parameters yourself", "Rprop": "the nearest is RMSprop",
    "Adafactor": "the nearest is Adam, or Lion with one state", "Muon": "the nearest is Nesterov",
    "swa_utils": "average the parameters yourself, with copy_()",
    "NAG": "use Nesterov", "Signum": "the nearest is Lion", "SGLD": "the nearest is Sgd",
    "Ftrl": "the nearest is Adagrad", "FTML": "the nearest is Adam", "DCASGD": "the nearest is Momentum",
    "LANS": "the nearest is Lamb",
}


class NoSuch:
    """A descriptor for an attribute that a class does not have. Reading it raises AttributeError with the sentence.
    Subclasses and instances may have an attribute of the same name."""

    def __init__(self, owner, name, sentence):
        self.owner, self.name, self.sentence = owner, name, sentence

    def __get__(self, value, cls=None):
        raise AttributeError(f"a {self.owner} has no {self.name}: {self.sentence}")


class Answer(NoSuch):
    """The same, and assigning or deleting the attribute raises too."""

    def __set__(self, value, given):
        self.__get__(value)

    def __delete__(self, value):
        self.__get__(value)


def attributes(owner, sentences):
    """The descriptors of a class, by name, and a __dir__ that omits them."""
    def listed(self):
        return [name for name in object.__dir__(self) if name not in sentences]

    listed.__name__ = "__dir__"
    return {name: Answer(owner, name, sentence) for name, sentence in sentences.items()} | {"__dir__": listed}


def public(function, keyword):
    """The parameters of the public function or method of this name, or []. The name of a compiled method begins with _.
    Of several, such as norm of cygrad and of cygrad.linalg, the first that does not have the keyword."""
    cygrad = sys.modules.get("cygrad")
    places = [getattr(cygrad, name, None) for name in ("autograd", "memory", "random", "testing", "linalg")]
    places = [cygrad, *places, getattr(cygrad, "Tensor", None)]
    for place in reversed(places) if function.startswith("_") else places:
        f = getattr(place, function.lstrip("_"), None)
        if not callable(f): continue
        names = [name for name in inspect.signature(f).parameters if name != "self"]
        if keyword not in names: return names
    return []


def of_numpy(name):
    """The message of a function of NumPy, such as "mean" or "linalg.norm", to which a tensor was passed."""
    ours = counterpart(name)
    return (f"numpy.{name} {REFUSED}: call {f'cygrad.{ours}(x), or ' if ours else ''}numpy.{name}(x.detach().numpy()) "
            f"for an array without a gradient")


def counterpart(name):
    """cygrad's name of a function of NumPy, or None."""
    name = NUMPY.get(name, name)
    place = sys.modules.get("cygrad")
    for part in name.split("."): place = getattr(place, part, None)
    return name if inspect.isroutine(place) and name not in OTHER else None


def of_keyword(function, keyword):
    """The message for an unknown keyword of a function, given by name, or None if Python's own message is as good."""
    if function.startswith("__"): return None
    caller = sys._getframe(1).f_globals.get("__name__", "")
    names = public(function, keyword)
    function = function.lstrip("_")
    if caller.startswith("numpy."): return of_numpy(function)       # numpy.mean(x) calls x.mean(axis=None, dtype=None)
    for ours in KEYWORDS.get(keyword, ()):
        if ours not in names: continue
        call = f"{ours}={EXAMPLES[ours]}" if ours in EXAMPLES else ours
        first = f"{names[0]}, " if names[0] != ours else ""
        return f"{function} takes {ours}, not {keyword}: {function}({first}{call}){MEANING.get(keyword, '')}"
    if keyword in WITHOUT: return f"{function} takes no {keyword}: {WITHOUT[keyword]}"
    return f"{function} takes no {keyword}; it takes {', '.join(names)}" if names else None


def of_module(name):
    """The message for an attribute that cygrad does not have."""
    advice = f": {MODULE[name]}" if name in MODULE else ""
    return f"module 'cygrad' has no attribute {described(name)}{advice}"


def of_optim(name, names):
    """The message for an attribute that cygrad.optim does not have. `names` are those that it has."""
    other = {known.lower(): advice for known, advice in OPTIM.items()} | {ours.lower(): f"use {ours}" for ours in names}
    advice = other.get(name.lower())                # (Nadam, AMSGrad, LAMB)
    return f"module 'cygrad.optim' has no attribute {described(name)}" + (f": {advice}" if advice else "")


def of_nn(name):
    """The message for an attribute that cygrad.nn does not have."""
    advice = f": {NN[name]}" if name in NN else ""
    return f"module 'cygrad.nn' has no attribute {described(name)}{advice}"


def of_solver(cls, given, named):
    """The message for wrong arguments of a solver, or None if there are none."""
    rate, *settings = cls.settings
    name, names = cls.__name__, [*dict.fromkeys((rate, "lr")), *settings, "params", "weight_decay"]
    if "beta1" in settings: names.append("betas")
    listed = given and (callable(given[0]) or hasattr(given[0], "__iter__") and getattr(given[0], "ndim", 1))
    first = {"params"} if listed else {rate}        # (a module and a method are meant as parameters)
    if "params" in first and len(given) > 1:
        return f"{name}: pass the arguments after the parameters by name: {name}(parameters, lr=...)"
    for key in named:
        if key in names: continue
        known = key in SOLVER and ("decay" in settings or not SOLVER[key].endswith("decay"))
        if known: return f"{name} takes no {key}: {SOLVER[key].format(name)}"
        return f"{name} takes no {key}; it takes {', '.join(names)}"
    if "params" in first and "params" in named and given: return f"{name}: the parameters are given twice"
    if rate != "lr" and "lr" in named and (rate in named or given and "params" not in first):
        return f"{name}: lr is another name for {rate}; give one of them"
    if rate == "lr" and "lr" in named and given and "params" not in first: return f"{name}: lr is given twice"
    if rate != "lr" and rate in named and given and "params" not in first: return f"{name}: {rate} is given twice"
    if "betas" in named and {"beta1", "beta2"} & {*named}: return f"{name}: give betas, or beta1 and beta2"
    if named.get("weight_decay") is not None and "wd" in settings and "wd" in named:
        return f"{name}: weight_decay is PyTorch's, which decays by lr weight_decay w; give wd or weight_decay"
    return None


def of_schedule(cls, given, named):
    """The message for wrong arguments of the schedule `cls`, or None if there are none."""
    code = getattr(cls.__init__, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARKEYWORDS | inspect.CO_VARARGS): return None
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    for key in named:
        if key in names: continue
        return f"{cls.__name__} takes no {key}" + (f": {SCHEDULE[key]}" if key in SCHEDULE else
                                                   f"; it takes {', '.join(names)}")
    if len(given) < code.co_argcount: return None
    return (f"{cls.__name__} takes {', '.join(names)}, got {len(given)} arguments; for last_epoch "
            f"{SCHEDULE['last_epoch']}")


def of_layer(cls, given, named):
    """The message for wrong arguments of the layer `cls`, or None if there are none."""
    code = getattr(cls.__init__, "__code__", None)      # (None: the layer has no __init__)
    if code is not None and code.co_flags & inspect.CO_VARKEYWORDS: return None
    if code is None: most, names = 0, ()
    else: most, names = code.co_argcount - 1, code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    for key in named:
        if key in names: continue
        ours = next((name for name in KEYWORDS.get(key, ()) if name in names), None)
        if ours is not None: return f"{cls.__name__} takes {ours}, not {key}"
        advice = LAYER.get(key) or WITHOUT.get(key)
        listed = f"; it takes {', '.join(names)}" if names else ""
        return f"{cls.__name__} takes no {key}" + (f": {advice}" if advice else listed)
    if len(given) <= most or code is not None and code.co_flags & inspect.CO_VARARGS: return None
    first, last = ", ".join(names[:most]), names[most:]
    takes = f"{cls.__name__} takes " + (f"only {first} by position" if most else
                                        "its arguments by name" if last else "no arguments")
    if isinstance(given[most], bool) and cls.__module__ in WITH_INPLACE:
        return f"{takes}: PyTorch's inplace does not exist, {LAYER['inplace']}"
    if "reduction" in last:
        value = next((x for x in given if isinstance(x, str)), "mean")
        return f"{takes}: write reduction={described(value)}; PyTorch's size_average and reduce do not exist"
    return takes + (f": pass {', '.join(last)} by name" if last else "")
