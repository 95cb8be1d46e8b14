"""Names of PyTorch, MXNet, nnabla, NumPy, JAX and HIPS autograd that cygrad does not have, each with a sentence that
names the replacement. Names with the same meaning everywhere are accepted as aliases and are not listed here. The names
of layers are in cygrad/nn/answers.py, those of solvers in cygrad/optim/answers.py, and those of loaders in
cygrad/data/answers.py.

A successful call or attribute access never runs this code. include/cygrad/answers.h calls it for an unknown keyword of
a compiled function. An attribute is a descriptor on the class that raises AttributeError, so hasattr() returns False
and getattr() returns its default."""

import inspect

from cygrad.core.errors import described
from cygrad.core.late_bound import namespace

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
OTHER = {"save", "load", "linspace"}
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
    "training": "the mode of the thread decides; write `with cygrad.train_mode():` or `with cygrad.predict_mode():` "
                "around the call",
}
# Functions whose last argument in PyTorch is inplace.
INPLACE = {"relu", "relu6", "silu", "mish", "selu", "celu", "elu", "hardswish", "hardsigmoid", "hardtanh", "leaky_relu",
           "threshold", "dropout"}
MEANING = {"ddof": ", where the divisor is n - correction", "unbiased": ", where the divisor is n - correction",
           "split_size_or_sections": ", the number of parts, where PyTorch takes their size"}
CPU = "all memory is the CPU's; leave it out"
# PyTorch's methods that are functions here, and what is made in place of its methods that write in place: the names of
# which are those of methods or functions with _ behind.
FUNCTIONS = """
    absolute allclose arccos arccosh arcsin arcsinh arctan arctan2 arctanh argwhere atan2 bitwise_left_shift
    bitwise_right_shift cholesky copysign count_nonzero cross deg2rad det diag diagonal diff digamma divide dsplit eig
    erfc erfinv exp2 fliplr flipud fmax fmin greater greater_equal hsplit hypot index_add inner isclose kron less
    less_equal lgamma log10 log2 logaddexp lstsq matrix_power median moveaxis multiply nan_to_num nanmean nansum
    negative nextafter not_equal outer polygamma prelu qr quantile rad2deg roll rot90 signbit sinc slogdet solve
    subtract svd trace unique vsplit xlogy
""".split()
OVER = """
    abs acos acosh asin asinh atan atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clip cos cosh cumprod
    cumsum erf exp expm1 floor floor_divide log1p log logical_and logical_not logical_or logical_xor neg pow reciprocal
    relu remainder round rsqrt scatter_add sigmoid sign sin sinh sqrt square tan tanh tril triu trunc
""".split()
FUNCTIONS_OVER = """
    absolute arccos arccosh arcsin arcsinh arctan2 arctan arctanh atan2 bitwise_left_shift bitwise_right_shift copysign
    deg2rad digamma divide erfc erfinv exp2 greater greater_equal hypot index_add less less_equal lgamma log10 log2
    multiply nan_to_num negative nextafter not_equal polygamma rad2deg sinc subtract xlogy
""".split()
RESHAPED = "squeeze", "swapaxes", "transpose", "unsqueeze"
HALF, BFLOAT16 = (f"there is no {name}; use astype(\"float32\")" for name in ("float16", "bfloat16"))
IN_PLACE = "x {0}= y writes in place"
TENSOR = {
    "view": "use reshape(), which is a view where the strides allow, or astype(dtype)",
    "view_as": "use reshape(y.shape)",
    "to": "use astype(dtype); " + CPU, "type": "use dtype, or astype(dtype) to cast", "type_as": "use astype(y.dtype)",
    "cuda": CPU, "xpu": CPU, "is_cuda": CPU, "ctx": CPU, "context": CPU, "as_in_context": CPU,
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
    "unbind": "use cygrad.unstack(x, axis)", "chunk": "use cygrad.chunk(x, n, axis)",
    "index_select": "use take(indices, axis)",
    "zero_": "use fill_(0)", "add_": IN_PLACE.format("+"), "sub_": IN_PLACE.format("-"), "mul_": IN_PLACE.format("*"),
    "div_": IN_PLACE.format("/"), "detach_": "use detach()", "new_zeros": "use cygrad.zeros(shape, dtype=x.dtype)",
    "new_ones": "use cygrad.ones(shape, dtype=x.dtype)", "new_tensor": "use cygrad.tensor(data, dtype=x.dtype)",
    "new_full": "use cygrad.full(shape, value, dtype=x.dtype)", "new_empty": "use cygrad.empty(shape, dtype=x.dtype)",
    "new": "use cygrad.tensor(data, dtype=x.dtype)", "nelement": "use size", "short": "use astype(\"int16\")",
    "char": "use astype(\"int8\")", "byte": "use astype(\"uint8\")",
    "is_floating_point": "use dtype.kind == \"f\"", "is_complex": "there are no complex tensors",
    "is_cpu": "all memory is the CPU's", "get_device": "all memory is the CPU's",
    "stride": "use strides, which count elements, too", "data_ptr": "use numpy(), which shares memory",
    "storage": "use numpy(), which shares memory", "untyped_storage": "use numpy(), which shares memory",
    "is_same_size": "compare the shapes", "is_nonzero": "use bool(x)",
    "resize_": "reshape() keeps the number of elements", "at": "x[i] = value writes in place",
    "block_until_ready": "operations run immediately, so there is nothing to wait for",
    "reshape_as": "use reshape(y.shape)", "unflatten": "use reshape()", "swapdims": "use swapaxes(axis1, axis2)",
    "movedim": "use cygrad.moveaxis(x, source, destination)",
    "tensor_split": "use cygrad.array_split(x, n, axis)", "narrow": "use a slice, x[:, start:stop]",
    "select": "use an index, x[:, i]", "masked_select": "use x[mask]", "where": "use cygrad.where(condition, x, y)",
    "repeat_interleave": "use cygrad.repeat(x, n, axis)", "equal": "use cygrad.array_equal(x, y)",
    "take_along_dim": "use cygrad.take_along_axis(x, indices, axis)", "amax": "use max(axis)", "amin": "use min(axis)",
    "clamp_min": "use clamp(min=value)", "clamp_max": "use clamp(max=value)", "true_divide": "use x / y",
    "vdot": "use cygrad.vecdot(x, y)", "inverse": "use cygrad.linalg.inv(x)", "pinverse": "use cygrad.linalg.pinv(x)",
    "bernoulli": "use cygrad.random.bernoulli", "uniform_": "use x[...] = cygrad.random.uniform(x.shape), or "
    "cygrad.nn.init.uniform_(x)", "normal_": "use x[...] = cygrad.random.normal(x.shape), or cygrad.nn.init.normal_(x)",
    "exponential_": "use x[...] = cygrad.random.exponential(x.shape)",
    **{name: f"use cygrad.{name}(x, ...)" for name in FUNCTIONS},
    **{name + "_": f"x[...] = x.{name}(...) writes in place" for name in OVER},
    **{name + "_": f"x[...] = cygrad.{name}(x, ...) writes in place" for name in FUNCTIONS_OVER},
    **{name + "_": f"use x = x.{name}(...), a view" for name in RESHAPED},
}
MODULE = {
    "randn": "use random.normal(shape)", "rand": "use random.uniform(shape)", "manual_seed": "use random.seed(n)",
    "randint": "use random.integers(low, high, shape)", "randperm": "use random.permutation(n)",
    "mm": "use x @ y", "bmm": "use x @ y", "dot": "use x @ y", "mv": "use x @ y",
    "cat": "use concat(xs, axis)", "numel": "use x.size", "clone": "use x.copy()", "unbind": "use unstack(x, axis)",
    "is_tensor": "use isinstance(x, cygrad.Tensor)", "movedim": "use moveaxis(x, source, destination)",
    "swapdims": "use swapaxes(x, axis1, axis2)", "repeat_interleave": "use repeat(x, n, axis)",
    "eq": "use x == y", "ne": "use x != y", "lt": "use x < y", "le": "use x <= y", "gt": "use x > y",
    "ge": "use x >= y",
    "dropout1d": "use nn.Dropout1d(p)", "dropout2d": "use nn.Dropout2d(p)", "dropout3d": "use nn.Dropout3d(p)",
    "alpha_dropout": "use nn.AlphaDropout(p)", "feature_alpha_dropout": "use nn.FeatureAlphaDropout(p)",
    "rrelu": "use nn.RReLU(lower, upper)", "hardshrink": "use nn.Hardshrink(lambd)",
    "softshrink": "use nn.Softshrink(lambd)", "tanhshrink": "use x - tanh(x)", "softmin": "use softmax(-x, axis)",
    "relu6": "use hardtanh(x, 0, 6)",
    "newaxis": "use None", "SGD": "use optim.SGD", "Adam": "use optim.Adam", "device": CPU, "cuda": CPU,
    "Generator": "use random.Generator(seed)",
    "bernoulli": "use random.bernoulli(p=p, shape=shape)",
    "multinomial": "use random.categorical(probs=p, shape=n), or random.choice(n, size, replace=False, p=p)",
    "float": "use float32", "double": "use float64", "half": "there is no float16; use float32", "long": "use int64",
    "int": "use int32", "functional": "operators are functions of cygrad",
    **{name: f"use func.{name}" for name in (
        "grad", "value_and_grad", "vjp", "jvp", "linearize", "jacobian", "hessian", "vmap", "functional_call")},
    "jacfwd": "use func.jacobian(f, mode=\"forward\")", "jacrev": "use func.jacobian(f, mode=\"reverse\")",
    "elementwise_grad": "use func.jvp, or func.vmap(func.grad(f))",
    "hessian_vector_product": "use func.hvp", "make_hvp": "use func.hvp", "make_jvp": "use func.jvp",
    "make_vjp": "use func.vjp", "custom_vjp": "use autograd.Function", "custom_jvp": "use autograd.Function",
    "jit": "use graph.Net.capture to run a function as a program", "PRNGKey": "use random.Generator(seed)",
    "numpy": "functions of NumPy are functions of cygrad, and NumPy's own take tensors",
    "lax": "operators are functions of cygrad, and loops are Python's",
    "pmap": "run several processes with comm.Communicator",
    "remat": "use checkpoint(f, x)", "make_jaxpr": "use graph.Net.capture and print the net",
    "eval_shape": "use graph.Net.capture, and infer() of the net", "Array": "use Tensor", "ndarray": "use Tensor",
    "device_put": CPU, "devices": CPU, "device_get": "use x.numpy()",
    "block_until_ready": "operations run immediately, so there is nothing to wait for",
    "tree_util": "use Python's own loops; func.grad and func.vmap take dicts, lists and tuples of tensors",
    "deriv": "use func.jvp", "holomorphic_grad": "there are no complex tensors",
    "grad_and_aux": "use func.grad(f, has_aux=True)", "multigrad": "use func.grad(f, argnums)",
    "hessian_tensor_product": "use func.hvp", "tensor_jacobian_product": "use func.vjp",
    "vector_jacobian_product": "use func.vjp", "make_ggnvp": "compose func.jvp and func.vjp",
    "utils": "batches are made by data.DataLoader, and checkpoint is a function of cygrad",
    "DataLoader": "use data.DataLoader", "extend": "use autograd.Function", "primitive": "use autograd.Function",
    "defvjp": "define backward of an autograd.Function", "defjvp": "compose operators, of which cygrad knows the rules",
}
RANDOM = {                  # names of numpy.random and jax.random
    "PRNGKey": "use Generator(seed)", "key": "use Generator(seed)", "default_rng": "use Generator(seed)",
    "RandomState": "use Generator(seed)",
    "split": "each draw advances its generator; use Generator(seed) for an independent one",
    "fold_in": "each draw advances its generator; use Generator(seed) for an independent one",
    "randn": "use normal(shape)", "standard_normal": "use normal(shape)", "rand": "use uniform(shape)",
    "random": "use uniform(shape)", "random_sample": "use uniform(shape)", "randint": "use integers(low, high, shape)",
    "multinomial": "use categorical(probs=p, shape=n)", "get_state": "read default_generator.state",
    "set_state": "assign to default_generator.state",
}
AUTOGRAD = {                # names of torch.autograd and of torch.autograd.graph
    "save_on_cpu": "all memory is the CPU's; cygrad.memory.offload(folder) keeps what backward needs in a file, "
                   "cygrad.memory.budget(bytes) bounds the memory, and cygrad.checkpoint(f, x) computes again",
    "graph": "its functions, such as register_multi_grad_hook, are in cygrad.autograd itself",
    "Variable": "call attach_grad() or requires_grad_() on a tensor",
    "gradcheck": "use testing.gradcheck(f, *inputs)", "gradgradcheck": "use testing.gradcheck(f, *inputs, order=2)",
    "functional": "use cygrad.func", "forward_ad": "use cygrad.func.jvp",
    "set_detect_anomaly": "use the scope detect_anomaly()",
    "get_gradient_edge": "use GradientEdge(y.grad_fn, output_nr)",
    "allow_mutation_on_saved_tensors": "write to a copy()",
}
OF = {"cygrad": MODULE, "cygrad.func": MODULE, "cygrad.autograd": MODULE | AUTOGRAD, "cygrad.random": RANDOM}


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
    cygrad = namespace()
    places = [getattr(cygrad, name, None) for name in ("autograd", "memory", "random", "testing", "linalg")]
    places = [cygrad, *places, getattr(cygrad, "Tensor", None)]
    for place in reversed(places) if function.startswith("_") else places:
        f = getattr(place, function.lstrip("_"), None)
        if not callable(f): continue
        names = [name for name in inspect.signature(f).parameters if name != "self"]
        if keyword not in names: return names
    return []


def of_numpy(name):
    """The message of a function of NumPy that cygrad does not have, such as "convolve", to which a tensor was
    passed."""
    return f"numpy.{name} {REFUSED}: call numpy.{name}(x.detach().numpy()) for an array without a gradient"


def counterpart(name):
    """cygrad's name of a function of NumPy, or None."""
    name = NUMPY.get(name, name)
    place = namespace()
    for part in name.split("."): place = getattr(place, part, None)
    return name if inspect.isroutine(place) and name not in OTHER else None


def of_keyword(function, keyword):
    """The message for an unknown keyword of a function, given by name, or None if Python's own message is as good."""
    if function.startswith("__"): return None
    names = public(function, keyword)
    function = function.lstrip("_")
    for ours in KEYWORDS.get(keyword, ()):
        if ours not in names: continue
        call = f"{ours}={EXAMPLES[ours]}" if ours in EXAMPLES else ours
        first = f"{names[0]}, " if names[0] != ours else ""
        return f"{function} takes {ours}, not {keyword}: {function}({first}{call}){MEANING.get(keyword, '')}"
    if keyword in WITHOUT: return f"{function} takes no {keyword}: {WITHOUT[keyword]}"
    return f"{function} takes no {keyword}; it takes {', '.join(names)}" if names else None


def of_count(function, given):
    """The message for too many arguments of a function, or None if Python's own message is as good."""
    names = [] if function.startswith("__") else public(function, "")
    function = function.lstrip("_")
    more = ": PyTorch's inplace does not exist, its result is a new tensor; leave it out" if function in INPLACE else ""
    return f"{function} takes {', '.join(names)}, got {given} positional arguments{more}" if names else None


def of_module(name, module="cygrad", answers=None):
    """The message for an attribute that a module does not have. `answers`: those of a module that is not in OF."""
    advice = (OF.get(module, {}) if answers is None else answers).get(name)
    return f"module {described(module)} has no attribute {described(name)}" + (f": {advice}" if advice else "")


