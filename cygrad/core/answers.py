"""What users of PyTorch, MXNet, nnabla and NumPy ask for under names that cygrad has not: for each name the sentence
that says what to use. What has one meaning everywhere is understood instead, and does not stand here.

Nothing here is looked at where a call succeeds or an attribute exists. A keyword that a compiled function has not comes
here from include/cygrad/answers.h; an attribute is a descriptor on the class that raises AttributeError, so hasattr()
is False and getattr() has its default."""

import inspect
import sys

from cygrad.core.errors import described

# A keyword of others: what ours is called, of which a function has one.
KEYWORDS = {
    "dim": ("axis", "axes"), "dims": ("axis", "axes", "shape"), "keepdim": ("keepdims",), "ddof": ("correction",),
    "unbiased": ("correction",), "start_dim": ("start",), "end_dim": ("end",), "dim0": ("axis1",), "dim1": ("axis2",),
    "input": ("x",), "a": ("x",), "self": ("x",), "other": ("y",), "tensors": ("xs",), "arrays": ("xs",),
    "size": ("shape",), "newshape": ("shape",), "repeats": ("shape",), "exponent": ("p",), "a_min": ("min",),
    "a_max": ("max",), "target": ("y", "targets", "labels"), "label": ("labels",), "pad_width": ("widths",),
    "diagonal": ("k",), "num_classes": ("classes",), "split_size_or_sections": ("sections",),
    "indices_or_sections": ("sections",), "fill_value": ("value",), "obj": ("data",), "object": ("data",),
    "source_array": ("data",), "grad_tensors": ("gradients",), "head_grads": ("gradients",),
    "grad_outputs": ("gradients",), "grad": ("gradients", "gradient"), "out_grad": ("gradient",),
    "grad_tensor": ("gradient",), "head_grad": ("gradient",), "clear_buffer": ("retain_graph",),
    "gradients": ("gradient",), "gradient": ("gradients",), "ord": ("p",),
}
EXAMPLES = {"axis": "...", "axes": (1, 0), "keepdims": True, "correction": 1, "start": 1, "end": -1, "shape": (2, 3),
            "k": 1, "sections": 2, "retain_graph": True}
# A keyword of others that nothing here has in its place.
WITHOUT = {
    "device": "all memory is the CPU's; leave it out", "ctx": "all memory is the CPU's; leave it out",
    "context": "all memory is the CPU's; leave it out", "requires_grad": "call requires_grad_() on the result",
    "inplace": "x[...] = value writes in place", "set_to_none": "x.grad = None does that",
    "out": "its result is a new tensor", "dtype": "cast with astype(dtype)",
    "where": "take what is meant with x[mask]", "initial": "add it to the result", "order": "the order is row by row",
    "params": "call set_parameters() on the solver", "pin_memory": "leave it out", "layout": "leave it out",
}
MEANING = {"correction": ", where the divisor is n - correction"}
# Arguments of solvers.
SOLVER = {
    "params": "its parameters come afterwards: {0}().set_parameters(parameters)",
    "parameters": "its parameters come afterwards: {0}().set_parameters(parameters)",
    "betas": "it takes the two apart: {0}(beta1=0.9, beta2=0.999)",
    "weight_decay": "call weight_decay(rate) after backward and before update()",
    "momentum": "the solvers are {solvers}",
}
CPU = "all memory is the CPU's; leave it out"
IN_PLACE = "x {0}= y writes in place"
TENSOR = {
    "view": "use reshape(), which is a view where the strides allow, or astype(dtype)",
    "view_as": "use reshape(y.shape)",
    "to": "use astype(dtype); " + CPU, "type": "use dtype, or astype(dtype) to cast", "type_as": "use astype(y.dtype)",
    "cuda": CPU, "xpu": CPU, "is_cuda": CPU, "device": CPU, "ctx": CPU, "context": CPU, "as_in_context": CPU,
    "as_in_ctx": CPU, "pin_memory": CPU,
    "half": "there is no float16; use astype(\"float32\")", "bfloat16": "there is no bfloat16; use astype(\"float32\")",
    "int": "use astype(\"int32\")", "long": "use astype(\"int64\")", "bool": "use astype(\"bool\")",
    "data": "use detach(), which shares memory, numpy(), or copy_(value) to write",
    "asnumpy": "use numpy(), which shares memory, or numpy().copy()", "asscalar": "use item()",
    "d": "use numpy(), and copy_(value) to write", "g": "use grad", "need_grad": "use requires_grad",
    "forward": "operations run at once; there is nothing to start", "numel": "use size", "dim": "use ndim",
    "ndimension": "use ndim", "element_size": "use itemsize", "t": "use T", "H": "use T", "mH": "use mT",
    "expand": "use broadcast_to(shape)", "expand_as": "use broadcast_to(y.shape)",
    "broadcast_like": "use broadcast_to(y.shape)", "repeat": "use cygrad.concat([x] * n), or broadcast_to(shape)",
    "tile": "use cygrad.concat([x] * n), or broadcast_to(shape)",
    "contiguous": "reshape() copies where it must; copy() is contiguous", "is_contiguous": "copy() is contiguous",
    "mm": "use x @ y", "bmm": "use x @ y", "dot": "use x @ y", "mv": "use x @ y", "eq": "use x == y",
    "ne": "use x != y", "lt": "use x < y", "le": "use x <= y", "gt": "use x > y", "ge": "use x >= y",
    "masked_fill": "use cygrad.where(mask, value, x)", "masked_fill_": "use x[mask] = value",
    "nonzero": "use cygrad.argwhere(x)", "index_select": "use take(indices, axis)", "chunk": "use split(n, axis)",
    "zero_": "use fill_(0)", "add_": IN_PLACE.format("+"), "sub_": IN_PLACE.format("-"), "mul_": IN_PLACE.format("*"),
    "div_": IN_PLACE.format("/"), "detach_": "use detach()", "new_zeros": "use cygrad.zeros(shape, dtype=x.dtype)",
    "new_ones": "use cygrad.ones(shape, dtype=x.dtype)", "new_tensor": "use cygrad.tensor(data, dtype=x.dtype)",
}
MODULE = {
    "randn": "use random.normal(shape)", "rand": "use random.uniform(shape)", "manual_seed": "use random.seed(n)",
    "randint": "use random.integers(low, high, shape)", "randperm": "use random.permutation(n)",
    "mm": "use x @ y", "bmm": "use x @ y", "dot": "use x @ y", "mv": "use x @ y",
    "mse_loss": "use mse(x, y)", "binary_cross_entropy_with_logits": "use bce_with_logits(x, y)",
    "cat": "use concat(xs, axis)", "hstack": "use concat(xs, axis)", "vstack": "use concat(xs, axis)",
    "newaxis": "use None", "SGD": "use optim.SGD", "Adam": "use optim.Adam", "device": CPU, "cuda": CPU,
    "save": "use pickle, or numpy.savez(path, **{name: x.detach().numpy()})",
    "load": "use pickle, or numpy.load(path)", "nn": "there are no layers yet; operators are functions of cygrad",
    "allclose": "use numpy.allclose(x.detach().numpy(), y.detach().numpy())", "inference_mode": "use no_grad()",
    "float": "use float32", "double": "use float64", "half": "there is no float16; use float32", "long": "use int64",
    "int": "use int32", "functional": "operators are functions of cygrad",
}
SOLVERS = {"step": "use update()", "param_groups": "use get_parameters()", "add_param_group": "use set_parameters()",
           "setup": "use set_parameters()", "set_learning_rates": "use set_learning_rate(rate)"}


class Answer:
    """An attribute that a class has not, and what its name means here."""

    def __init__(self, owner, name, sentence):
        self.owner, self.name, self.sentence = owner, name, sentence

    def __get__(self, value, cls=None):
        raise AttributeError(f"a {self.owner} has no {self.name}: {self.sentence}")

    def __set__(self, value, given):
        self.__get__(value)

    def __delete__(self, value):
        self.__get__(value)


def attributes(owner, sentences):
    """The descriptors of a class, by name, and its __dir__ without them."""
    def listed(self):
        return [name for name in object.__dir__(self) if name not in sentences]

    listed.__name__ = "__dir__"
    return {name: Answer(owner, name, sentence) for name, sentence in sentences.items()} | {"__dir__": listed}


def public(function):
    """The function or method of users that has this name; a compiled method's begins with _."""
    cygrad = sys.modules.get("cygrad")
    places = [getattr(cygrad, name, None) for name in ("autograd", "memory", "random", "testing")]
    places = [cygrad, *places, getattr(cygrad, "Tensor", None)]
    for place in reversed(places) if function.startswith("_") else places:
        f = getattr(place, function.lstrip("_"), None)
        if callable(f): return f
    return None


def of_keyword(function, keyword):
    """The sentence for a keyword that a function, of that name, has not; None where there is no better one than
    Python's."""
    if function.startswith("__"): return None
    f = public(function)
    function = function.lstrip("_")
    names = [name for name in inspect.signature(f).parameters if name != "self"] if f is not None else []
    for ours in KEYWORDS.get(keyword, ()):
        if ours not in names: continue
        call = f"{ours}={EXAMPLES[ours]}" if ours in EXAMPLES else ours
        first = f"{names[0]}, " if names[0] != ours else ""
        return f"{function} takes {ours}, not {keyword}: {function}({first}{call}){MEANING.get(ours, '')}"
    if keyword in ("out", "dtype", "where", "initial", "order") and hasattr(sys.modules["numpy"], function):
        return (f"{function} of a tensor takes no {keyword}, which numpy.{function}(x) gives it: call "
                f"cygrad.{function}(x), or numpy.{function}(x.detach().numpy()) for an array without a gradient")
    if keyword in WITHOUT: return f"{function} takes no {keyword}: {WITHOUT[keyword]}"
    return f"{function} takes no {keyword}; it takes {', '.join(names)}" if names else None


def of_module(name):
    """The message for an attribute that cygrad has not."""
    said = f": {MODULE[name]}" if name in MODULE else ""
    return f"module 'cygrad' has no attribute {described(name)}{said}"


def of_solver(name, given, named, settings):
    """The sentence for the arguments of a solver called `name`; None if none is taken for another's. `settings` are the
    names that it knows; None: all that it is given may be its own."""
    if given and hasattr(given[0], "__iter__") and not isinstance(given[0], str) and getattr(given[0], "ndim", 1):
        return told(name, "params")
    for key in named:
        if settings is not None and key not in settings:
            return told(name, key) if key in SOLVER else f"{name} takes no {key}; it takes {', '.join(settings)}"
    return None


def told(name, key):
    solvers = ", ".join(sorted({f.__name__ for f in vars(sys.modules["cygrad"].optim).values() if hasattr(f, "rate")}
                               - {"Solver"}))
    return f"{name} takes no {key}: {SOLVER[key].format(name, solvers=solvers)}"
