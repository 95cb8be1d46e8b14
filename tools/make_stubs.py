"""Write the type stubs: python tools/make_stubs.py [--check]

One .pyi for each compiled module, and one for each Python module that users see something of. Names and signatures are
those of the running package; the operators among them, and Tensor's methods, come from THE TABLE. What no signature
says stands here, once: the type of a parameter by its name, the result of a function that is not a tensor, and those
few whose result depends on their arguments. A public parameter or result without a type ends the run with its name."""

import enum
import inspect
import re
import sys

import surface
from surface import Answer

NUMBERS = {"int", "float", "bool", "complex"}

PARAMETERS = {              # `function.parameter`, or the parameter's name wherever it stands
    "b": "_Data | None", "gradcheck.f": "Callable[..., Tensor | tuple[Tensor, ...]]", "gradcheck.inputs": "Any",
    "more": "Any",
    "flatten.start": "int", "flatten.end": "int", "axis1": "int", "axis2": "int", "Adam.lr": "float | None",
    "atol": "float", "rtol": "float", "order": "int", "persistent": "bool", "seed": "int",
    "capped": "bool",
    "alpha": "float", "beta1": "float", "beta2": "float", "eps": "float", "lr": "float", "value": "float",
    "axis": "int | Sequence[int] | None", "axes": "int | Sequence[int] | None",
    "create_graph": "bool", "allow_unused": "bool", "endpoint": "bool", "keepdims": "bool", "requires_grad": "bool",
    "data": "_Data", "labels": "_Data", "p": "_Operand", "dropout.p": "float", "beta": "float", "condition": "_Data",
    "clip.min": "_Data | None", "clip.max": "_Data | None", "approximate": "Literal['none', 'tanh']",
    "activation": "Literal['relu', 'tanh', 'sigmoid'] | None",
    "x": "_Data", "y": "_Data", "w": "_Data", "g": "_Data", "targets": "_Data", "log_probabilities": "_Data",
    "weight": "_Data", "bias": "_Data",
    "correction": "float", "ord": "float", "log_softmax.axis": "int", "softmax.axis": "int",
    "cumsum.axis": "int | None", "argmax.axis": "int | None", "argmin.axis": "int | None",
    "dtype": "npt.DTypeLike | None", "astype.dtype": "npt.DTypeLike", "set_default_dtype.dtype": "npt.DTypeLike",
    "dtype_number.dtype": "npt.DTypeLike",
    "flag": "bool", "train_mode": "bool | None",
    "grad_req": "Literal['write', 'add', 'null']", "grad_reqs": "_GradReq | Sequence[_GradReq]",
    "gradient": "_Head", "mark_variables.gradients": "Tensor | Sequence[Tensor]",
    "gradients": "_Head | Sequence[_Head]",
    "inputs": "Tensor | Sequence[Tensor] | None",
    "k": "int", "n": "int", "n_rows": "int", "n_cols": "int | None", "num": "int", "output_nr": "int",
    "copy": "bool | None", "device": "str | None", "from_dlpack.x": "Any",
    "generator": "Generator | None", "given": "float | Sequence[int]", "high": "float | None", "loc": "float | None",
    "low": "float | None", "integers.high": "int | None", "integers.low": "int | None",
    "bernoulli.p": "float | None", "permutation.x": "int | _Data", "s": "float", "scale": "float | None",
    "size": "int | Sequence[int] | None",
    "ctx": "FunctionContext", "save_for_backward.tensors": "Tensor | None",
    "mark_non_differentiable.outputs": "Tensor", "mark_dirty.inputs": "Tensor",
    "setup_context.inputs": "tuple[Any, ...]", "setup_context.output": "Any",
    "set_materialize_grads.value": "bool", "forward.inputs": "Any", "backward.grads": "Tensor | None",
    "apply.inputs": "Any", "Handle.hooks": "Any", "Handle.key": "object",
    "pack": "Callable[[Tensor], Any]", "unpack": "Callable[[Any], Tensor]",
    "register_hook.f": "Callable[[Tensor], Tensor | None]",
    "register_post_accumulate_grad_hook.f": "Callable[[Tensor], object]",
    "register_prehook.f": "Callable[[tuple[Tensor | None, ...]], object]",
    "register_node_hook.f": "Callable[[tuple[Tensor | None, ...], tuple[Tensor | None, ...]], object]",
    "formula.c": "Any", "formula.i": "int", "formula.g": "Any",
    "learning_rate": "float", "listener": "Callable[[_Event], object] | None",
    "node": "Node",
    "outputs": "Tensor | Sequence[Tensor]", "mode": "Literal['stdout', 'dicts']",
    "why.t": "Tensor", "limit.bytes": "int | str",
    **{f"MemoryLimitError.{name}": "str" for name in "message operation line".split()},
    **{f"MemoryLimitError.{name}": "int" for name in "requested limit fits".split()},
    "table.by": "Literal['operation', 'category', 'line', 'stack', 'why']", "path": "str | PathLike[str]",
    "compare.by": "Literal['operation', 'category', 'line']", "compare.other": "profile | str | PathLike[str]",
    "plot.axis": "Literal['events', 'time']",
    "parameters": "Mapping[str, Tensor] | Iterable[Tensor]",
    "reduction": "Literal['mean', 'sum', 'none']",
    "retain_graph": "bool | None",
    "shape": "int | Sequence[int]",
    "start": "float", "stop": "float", "arange.stop": "float | None", "step": "float",
    "variables": "Tensor | Sequence[Tensor]",
    "indices": "_Data", "index": "_Data", "src": "_Data", "mask": "_Data", "v": "_Data", "operands": "_Data",
    "xs": "Iterable[_Data]", "put.attributes": "Any", "put_slice.index": "Any", "getitem.index": "Any",
    "concat.axis": "int | None", "stack.axis": "int", "split.axis": "int", "take.axis": "int | None",
    "expand_dims.axis": "int | Sequence[int]", "gather.axis": "int", "scatter_add.axis": "int", "add_at.axis": "int",
    "sort.axis": "int", "argsort.axis": "int", "topk.axis": "int", "descending": "bool", "largest": "bool",
    "sections": "int | Sequence[int]", "widths": "int | Sequence[int] | Sequence[Sequence[int]]",
    "pad.mode": "Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap']", "classes": "int", "equation": "str",
}

RESULTS = {                 # `Class.member` or the function's name; functions of THE TABLE and those below give tensors
    **{f"Generator.{name}": "Tensor" for name in "normal uniform bernoulli integers permutation".split()},
    "Generator.state": "tuple[int, int]", "seed": "None",
    "GradientEdge.node": "Node", "GradientEdge.output_nr": "int",
    "Node.name": "str", "Node.next_functions": "tuple[tuple[Node | None, int], ...]", "Node.saved_bytes": "int",
    "Node.register_hook": "Handle", "Node.register_prehook": "Handle", "Handle.remove": "None",
    "Function.forward": "Any", "Function.setup_context": "None", "Function.backward": "Any", "Function.apply": "Any",
    "FunctionContext.saved_tensors": "tuple[Tensor | None, ...]",
    "FunctionContext.needs_input_grad": "tuple[bool, ...]",
    **{f"FunctionContext.{name}": "None"
       for name in ("save_for_backward", "mark_non_differentiable", "mark_dirty", "set_materialize_grads")},
    **{f"GradientCollector.{name}": "None" for name in ("backward", "close", "zero_gradients")},
    "Operator.flat": "bool", "Operator.name": "str", "Operator.apart": "int",
    "Operator.numpy": "Any",
    **{f"Operator.{flag}": "bool"
       for flag in "promotes floats fused differentiable by_mode views counting signs whole".split()},
    "Solver.get_parameters": "dict[str, Tensor]", "Solver.learning_rate": "float", "Solver.set_learning_rate": "None",
    "Solver.set_parameters": "None", "Solver.update": "None", "Solver.zero_grad": "None", "Solver.lr": "float",
    "Adam.beta1": "float", "Adam.beta2": "float", "Adam.eps": "float",
    "split": "tuple[Tensor, ...]", "topk": "tuple[Tensor, Tensor]", "Tensor.split": "tuple[Tensor, ...]",
    "Tensor.topk": "tuple[Tensor, Tensor]",
    "Tape.nodes": "int", "Tape.saved_bytes": "int",
    "Tensor.T": "Tensor", "Tensor.mT": "Tensor",
    **{f"Tensor.{name}": "Tensor" for name in "flatten ravel swapaxes float double cpu".split()},
    "Tensor.dtype": "np.dtype[Any]", "Tensor.fresh_grad": "bool", "Tensor.grad": "Tensor | None",
    "Tensor.grad_fn": "Node | None", "Tensor.grad_req": "Literal['write', 'add', 'null']", "Tensor.is_leaf": "bool",
    "Tensor.item": "Any", "Tensor.itemsize": "int", "Tensor.nbytes": "int", "Tensor.ndim": "int",
    "Tensor.numpy": "npt.NDArray[Any]", "Tensor.requires_grad": "bool", "Tensor.shape": "tuple[int, ...]",
    "Tensor.size": "int", "Tensor.strides": "tuple[int, ...]", "Tensor.tolist": "Any", "Tensor.version": "int",
    "Tensor.register_hook": "Handle", "Tensor.register_post_accumulate_grad_hook": "Handle",
    "Tensor.retain_grad": "None",
    "Tensor.attach_grad": "Tensor", "Tensor.requires_grad_": "Tensor", "Tensor.backward": "None",
    "Tensor.drop_grad": "Tensor", "Tensor.zero_grad": "None", "Tensor.detach": "Tensor", "Tensor.copy": "Tensor",
    "Tensor.copy_": "Tensor", "Tensor.free": "None", "scope.keep": "Tensor", "Tensor.fill_": "Tensor",
    "Row.name": "str", "Row.family": "str", "Row.kept": "dict[str, str]", "Row.tries": "list[_Call]",
    "Failure.failed": "bool",
    "gradcheck": "Literal[True]",
    "backward": "None", "mark_variables": "None", "set_default_dtype": "None", "get_default_dtype": "np.dtype[Any]",
    "set_num_threads": "None", "get_num_threads": "int", "get_include": "str",
    "show_config": "dict[str, Any] | None",
    "is_recording": "bool", "is_training": "bool", "set_recording": "bool", "set_training": "bool",
    "empty_cache": "None", "reset_peak": "int", "stats": "dict[str, Any]",
    "profile.peak_bytes": "int", "profile.at_peak": "list[PeakRow]", "profile.allocations": "list[Site]",
    "profile.table": "str", "profile.plot": "None", "profile.save": "None", "profile.flame": "None",
    "profile.advice": "list[Advice]", "profile.compare": "Comparison",
    "events.__enter__": "list[_Event]", "track.peak_bytes": "int", "track.leaked_bytes": "int",
}

ROW = {
    "function": "Callable[..., Any]", "operator": "Operator", "like": "Callable[..., Any]",
    "samples": "Callable[[], list[_Call]]", "keeps": "dict[str, str] | Callable[..., dict[str, str]]",
    "methods": "tuple[str, ...]", "ties": "tuple[Any, ...]", "public": "bool",
    "aliases": "tuple[str, ...]", "own_gradient": "bool", "tested": "Callable[..., Any]",
}
PARAMETERS |= {f"Row.{name}": kind for name, kind in ROW.items()} | {
    "Row.tested": "Callable[..., Any] | None",
    "Row.keeps": "Mapping[str, str] | Iterable[tuple[str, str]] | Callable[..., dict[str, str]]"}

INSTANCE = {                # attributes that no class shows, since __init__ makes them
    "MemoryLimitError": ["requested: int", "limit: int", "fits: int", "operation: str", "line: str"],
    "why": ["bytes: int", "category: str", "holders: int", "entries: list[tuple[int, str]]",
            "made_by: str", "line: str"],
    "Failure": ["allocations: int | None"],
    "Row": [f"{name}: {kind}" for name, kind in ROW.items()],
}

DECLARED = {                # what operator classes declare for Elementwise to read: of any kind
    "integers": "Any",
}

TENSORS = {"arange", "asarray", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
           "stop_gradient", "tensor", "zeros", "zeros_like",
           "flatten", "swapaxes", "matrix_transpose", "single", "double", "cpu",
           "bernoulli", "dropout", "from_dlpack", "integers", "normal", "permutation", "uniform"}

_SCOPE = """\
@overload
def {name}({parameters}) -> {result}: ...
@overload
def {name}({first}: _F) -> _F: ..."""

_GRAD = """\
@overload
def grad(outputs: Tensor | Sequence[Tensor], inputs: {inputs}, \
gradients: _Head | Sequence[_Head] = None, retain_graph: bool | None = None, \
*args: Never, create_graph: bool = False, allow_unused: {unused}, \
train_mode: bool | None = None) -> {result}: ..."""
_ONE, _SEVERAL = "Tensor | GradientEdge", "Sequence[Tensor | GradientEdge]"

WHOLE = {                   # what is said in full, since one result type would not be true
    "grad": "\n".join([
        _GRAD.format(inputs=_ONE, unused="Literal[False] = False", result="Tensor"),
        _GRAD.format(inputs=_SEVERAL, unused="Literal[False] = False", result="tuple[Tensor, ...]"),
        _GRAD.format(inputs=_ONE, unused="bool", result="Tensor | None"),
        _GRAD.format(inputs=_SEVERAL, unused="bool", result="tuple[Tensor | None, ...]"),
    ]),
    "record": _SCOPE.format(name="record", parameters="train_mode: bool | None = True", result="_Recording",
                            first="train_mode"),
    "pause": _SCOPE.format(name="pause", parameters="train_mode: bool | None = False", result="Scope",
                           first="train_mode"),
    **{name: _SCOPE.format(name=name, parameters="f: None = None", result="Scope", first="f")
       for name in ("train_mode", "predict_mode", "no_grad", "enable_grad")},
}

DUNDERS = {                 # syntax; `{cls}` is the class
    **{f"__{op}__": "(self, y: _Operand, /) -> Tensor" for op in
       "add sub mul truediv matmul pow radd rsub rmul rtruediv rmatmul rpow lt le gt ge "
       "and or xor rand ror rxor".split()},
    **{f"__i{op}__": "(self, y: _Operand, /) -> Self" for op in "add sub mul truediv".split()},
    "__pow__": "(self, y: _Operand, mod: None = None, /) -> Tensor",
    "__rpow__": "(self, y: _Operand, mod: None = None, /) -> Tensor", "__invert__": "(self) -> Tensor",
    "__eq__": "(self, y: _Operand, /) -> Tensor", "__ne__": "(self, y: _Operand, /) -> Tensor",
    "__neg__": "(self) -> Tensor", "__pos__": "(self) -> Tensor", "__abs__": "(self) -> Tensor",
    "__bool__": "(self) -> bool", "__int__": "(self) -> int", "__float__": "(self) -> float",
    "__index__": "(self) -> int", "__len__": "(self) -> int", "__hash__": "(self) -> int",
    "__iter__": "(self) -> Iterator[Tensor]",
    "__getitem__": "(self, index: Any, /) -> Tensor", "__setitem__": "(self, index: Any, value: _Data, /) -> None",
    "__array__": "(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]",
    "__bytes__": "(self) -> bytes", "__dir__": "(self) -> list[str]",
    "__array_ufunc__": "(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any",
    "__dlpack_device__": "(self) -> tuple[int, int]",
    "__dlpack__": "(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, "
                  "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any",
    "__copy__": "(self) -> Tensor", "__format__": "(self, spec: str) -> str",
    "__next__": "(self) -> Any", "__await__": "(self) -> Any",
    "__enter__": "(self) -> {entered}",
    "__exit__": "(self, kind: object = None, value: object = None, traceback: object = None) -> None",
    "__call__": "(self, f: _F) -> _F",
    "__reduce__": "(self) -> Any", "__reduce_ex__": "(self, protocol: Any, /) -> Any",
    "__getstate__": "(self) -> Any", "__setstate__": "(self, state: Any) -> None",
    "__deepcopy__": "(self, memo: Any) -> Tensor",
}
ENTERED = {"Scope": "Tape | None", "events": "list[_Event]", "GradientCollector": "Self", "detect_anomaly": "Self",
           "saved_tensors_hooks": "Self", "Handle": "Self", "fail_allocation": "Failure", "assert_no_leak": "None"}
SILENT = {                  # of every class, or nothing for a type checker; the buffer protocol shows from 3.12 on
    f"__{name}__" for name in "new doc module dict weakref qualname delitem repr str slots annotations firstlineno "
    "static_attributes buffer release_buffer pyx_vtable reduce_cython setstate_cython test".split()}
OVERRIDES = {"__eq__", "__ne__"}                    # object promises a bool

ALIASES = {                 # name: definition; after them what may be needed from elsewhere
    "_GradReq": "_GradReq: TypeAlias = Literal['write', 'add', 'null']",
    "_Call": "_Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]",
    "_Event": "_Event: TypeAlias = tuple[str, int, int, str]",
    "_Operand": "_Operand: TypeAlias = Tensor | float | npt.NDArray[Any] | np.generic",
    "_float": "_float: TypeAlias = float",
    "_Head": "_Head: TypeAlias = Tensor | npt.NDArray[Any] | float | None",
    "_Data": "_Data: TypeAlias = Tensor | npt.ArrayLike",
    "_F": "_F = TypeVar('_F', bound=Callable[..., Any])",
    "_Recording": "class _Recording(Scope):\n    def __enter__(self) -> Tape: ...",
}
SOURCES = {
    "os": ["PathLike"],
    "collections.abc": ["Callable", "Iterable", "Iterator", "Mapping", "Sequence"],
    "typing": ["Any", "Literal", "NamedTuple", "Never", "Self", "TypeAlias", "TypeVar", "final", "overload"],
    "typing_extensions": ["disjoint_base"],
}


class Stub:
    """The stub of one module; `untyped` collects what should have a type and has none."""

    def __init__(self, module, shown, untyped):
        self.module = module
        self.shown = shown                          # ids of what users see: there every type must be known
        self.untyped = untyped
        self.package = hasattr(module, "__path__")
        self.lines = []

    def source(self, name, value):
        """The module that something shown in this package was made in."""
        made = getattr(value, "__module__", None)
        if made and made.startswith("cygrad."): return made
        inner = self.module.__name__ + "."
        return next(n for n, m in surface.modules().items() if n.startswith(inner) and name in vars(m))

    def default(self, value):
        if isinstance(value, (bool, int, float, str, type(None))): return repr(value)
        return "..."

    def parameter_type(self, owner, parameter, strict):
        if parameter.annotation is not inspect.Parameter.empty:
            a = parameter.annotation
            return a if isinstance(a, str) else getattr(a, "__name__", str(a))
        if not strict: return "Any"
        for key in (f"{owner}.{parameter.name}", parameter.name):
            if key in PARAMETERS: return PARAMETERS[key]
        self.untyped.append(f"{self.module.__name__}: parameter {parameter.name!r} of {owner}: PARAMETERS")
        return "Any"

    def parameters(self, owner, parameters, strict, method=False):
        out, star = [], False
        for i, p in enumerate(parameters):
            if i == 0 and (method or p.name == "self"):     # a Tensor method that is a function too calls it x
                out.append(p.name if method else f"{p.name}: Any")
                continue
            if p.kind is p.VAR_POSITIONAL:
                # *shape and *axes are arguments; *args and *_ are there to be refused with a message
                kind = "Never" if p.name in ("args", "_") else self.parameter_type(owner, p, strict)
                out.append(f"*{p.name}: {kind}")
                star = True
                continue
            if p.kind is p.VAR_KEYWORD:
                out.append(f"**{p.name}: {'Never' if p.name == '__' else 'Any'}")
                continue
            if p.kind is p.KEYWORD_ONLY and not star:
                out.append("*")
                star = True
            kind = self.parameter_type(owner, p, strict)
            if p.default is None and "None" not in kind and kind != "Any": kind += " | None"
            out.append(f"{p.name}: {kind}" + ("" if p.default is p.empty else f" = {self.default(p.default)}"))
        return ", ".join(out)

    def result(self, owner, key, strict):
        if not strict: return "Any"
        if key in RESULTS: return RESULTS[key]
        name = key.rpartition(".")[2]
        if owner is None and (name in TENSORS or name in TABLE): return "Tensor"
        if owner == "Tensor" and name in METHODS: return "Tensor"
        self.untyped.append(f"{self.module.__name__}: the result of {key}: RESULTS")
        return "Any"

    def function(self, name, f):
        strict = id(f) in self.shown
        if name in WHOLE and strict: return self.lines.append(WHOLE[name])
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            return self.lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
        text = self.parameters(name, parameters, strict)
        self.lines.append(f"def {name}({text}) -> {self.result(None, name, strict)}: ...")

    def constant(self, name, value):
        kind = type(value).__name__
        known = {"ROWS": "dict[str, Row]", "TABLE": "list[Row]"}.get(name)
        if known: return self.lines.append(f"{name}: {known}")
        known = {"dtype": "np.dtype[Any]", "tuple": "tuple[Any, ...]", "dict": "dict[Any, Any]", "list": "list[Any]",
                 "ndarray": "npt.NDArray[Any]", "set": "set[Any]", "frozenset": "frozenset[Any]"}
        simple = kind in NUMBERS | {"str", "bytes"}
        self.lines.append(f"{name}: {kind if simple else known.get(kind, 'Any')}")

    def enumeration(self, name, cls):
        base = "IntFlag" if issubclass(cls, enum.IntFlag) else "IntEnum" if issubclass(cls, enum.IntEnum) else "Enum"
        self.lines.append(f"class {name}(enum.{base}):")
        self.lines += [f"    {member.name} = {int(member.value)}" for member in cls]

    def klass(self, name, cls):
        if issubclass(cls, enum.Enum): return self.enumeration(name, cls)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            self.lines.append(f"class {name}(NamedTuple):")
            self.lines += [f"    {field}: {kind.__name__}" for field, kind in cls.__annotations__.items()]
            return None
        strict = id(cls) in self.shown
        base = cls.__bases__[0]
        if surface.is_compiled(self.module) and not cls.__flags__ & 1 << 9:         # no heap type of Python's `class`
            if not cls.__flags__ & 1 << 10: self.lines.append("@final")
            elif cls.__basicsize__ > base.__basicsize__: self.lines.append("@disjoint_base")
        bases = {object: "", tuple: "(tuple[Any, ...])"}.get(base, f"({base.__name__})")
        self.lines.append(f"class {name}{bases}:")
        body = Stub(self.module, self.shown, self.untyped)
        body.lines += INSTANCE.get(name, [])
        for member, value in vars(cls).items(): body.member(name, cls, member, value, strict)
        if "float" in vars(cls):                    # a method of that name hides the type in its class
            body.lines = [re.sub(r"(?<![\w.])float(?![\w(])", "_float", line) for line in body.lines]
        self.lines += ["    " + line for text in body.lines for line in text.split("\n")] or ["    pass"]

    def member(self, owner, cls, name, value, strict):
        key = f"{owner}.{name}"
        if name == "__init__" or name == "__new__" and isinstance(value, staticmethod):
            parameters = surface.constructor(cls)
            first = "self" if name == "__init__" else "cls"
            text = self.parameters(owner, parameters, strict)
            made = "None" if name == "__init__" else "Self"
            self.lines.append(f"def {name}({', '.join(filter(None, [first, text]))}) -> {made}: ...")
        elif isinstance(value, Answer): pass        # a name of others, which no value has
        elif name.startswith("__") and value is None and name != "__doc__":
            self.lines.append(f"{name}: None")
        elif name in DUNDERS:
            text = DUNDERS[name].format(cls=owner, entered=ENTERED.get(owner, "Self"))
            if not strict: text = re.sub(r"(: |-> )[^,()=]+(?=,|\)|$)", r"\1Any", text)
            ignore = "  # type: ignore[override]" if name in OVERRIDES else ""
            self.lines.append(f"def {name}{text}: ...{ignore}")
        elif name in DECLARED and hasattr(cls, "promotes"):
            self.lines.append(f"{name}: {DECLARED[name]}")
        elif name.startswith("_"):
            if strict and name.startswith("__") and name not in SILENT:     # stubtest overlooks some
                self.untyped.append(f"{self.module.__name__}: {key}: DUNDERS")
        elif surface.is_attribute(value):
            kind = self.result(owner, key, strict)
            self.lines.append(f"@property\ndef {name}(self) -> {kind}: ...")
            if isinstance(value, property) and value.fset:
                self.lines.append(f"@{name}.setter\ndef {name}(self, value: {kind}) -> None: ...")
        elif surface.is_function(value) or isinstance(value, (staticmethod, classmethod)):
            kind = "static" if isinstance(value, staticmethod) else "class" if isinstance(value, classmethod) else ""
            if kind: self.lines.append(f"@{kind}method")
            f = value.__func__ if kind else value
            parameters = list(inspect.signature(f).parameters.values())
            text = self.parameters(f.__name__, parameters, strict, method=kind != "static")
            self.lines.append(f"def {name}({text}) -> {self.result(owner, key, strict)}: ...")
        else:
            self.constant(name, value)

    def text(self):
        own = surface.own(self.module)
        for name, value in surface.public(self.module).items() if self.package else ():
            if name in own: continue
            source = "cygrad" if inspect.ismodule(value) else self.source(name, value)
            real = getattr(value, "__name__", name) if inspect.isclass(value) else name         # SGD is Sgd
            self.lines.append(f"from {source} import {real} as {name}")
        if self.package: self.lines.append(f"__all__ = {sorted(self.module.__all__)!r}")
        order = sorted(own.items(), key=lambda item: (inspect.isclass(item[1]), item[0]))
        for name, value in [i for i in order if not surface.is_function(i[1]) and not inspect.isclass(i[1])]:
            self.constant(name, value)
        classes = sorted((v for v in own.values() if inspect.isclass(v)), key=lambda c: (len(c.__mro__), c.__name__))
        for cls in classes: self.klass(cls.__name__, cls)
        for name, value in order:
            if surface.is_function(value): self.function(name, value)
        return self.header(set(own)) + "\n".join(self.lines) + "\n"

    def header(self, own):
        """The imports and aliases that the lines use."""
        body = "\n".join(self.lines)

        def used(name, text):
            return re.search(rf"(?<![\w.]){re.escape(name)}\b", text)

        aliases, seen = [], body
        for name, definition in ALIASES.items():
            if used(name, body):
                seen += "\n" + definition
                (aliases if name != "_Recording" else self.lines).append(definition)
        out = ["# Written by tools/make_stubs.py; do not edit."]
        if "(enum." in seen: out.append("import enum")
        for source, names in SOURCES.items():
            wanted = [n for n in names if used(n, seen)]
            if wanted: out.append(f"from {source} import {', '.join(wanted)}")
        if "np." in seen: out.append("import numpy as np")
        if "npt." in seen: out.append("import numpy.typing as npt")
        for name, source in CLASSES.items():
            if source != self.module.__name__ and used(name, seen) and f" as {name}" not in body:
                out.append(f"from {source} import {name}")
        return "\n".join([*out, *aliases]) + "\n\n"


def front():
    """The stub of cygrad itself: re-exports, dtypes, and the operators of the table."""
    lines = ["# Written by tools/make_stubs.py; do not edit.", "from typing import Any", "import numpy as np", ""]
    last = []
    for name, value in surface.public(surface.cygrad).items():
        if inspect.ismodule(value):
            lines.append(f"from cygrad import {name} as {name}")
        elif type(value).__module__.startswith("numpy"):
            last.append(f"{name}: np.dtype[np.{'bool_' if name == 'bool' else name}]")
        elif value.__module__ == "cygrad":
            last.append(f"def {name}() -> {RESULTS[name]}: ...")
        else:
            real = value.__name__
            lines.append(f"from {value.__module__} import {real} as {name}")
    return "\n".join([*lines, "", *last, "nd: Any", "", "__version__: str", ""])


TABLE = {row.name for row in surface.cygrad.ops.TABLE}
METHODS = {name for row in surface.cygrad.ops.TABLE for name in row.methods}
CLASSES = {}


def main():
    modules = surface.modules()
    for name, module in modules.items():
        CLASSES.update({n: name for n, v in surface.own(module).items() if inspect.isclass(v) and v.__module__ == name})
    packages = surface.public_packages()
    classes = {known.partition(".")[0] for known in RESULTS}
    shown = {id(v) for m in packages for v in surface.public(m).values()}
    shown |= {id(v) for m in modules.values() for n, v in surface.own(m).items() if n in classes and inspect.isclass(v)}
    files, errors = {}, []
    for name, module in modules.items():
        if name == "cygrad": continue
        made = [v for v in surface.own(module).values() if inspect.isclass(v) or surface.is_function(v)]
        if not (surface.is_compiled(module) or module in packages or any(id(v) in shown for v in made)): continue
        path = surface.ROOT.joinpath(*module.__name__.split("."))
        path = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
        files[path] = Stub(module, shown, errors).text()
    if errors: sys.exit("\n".join(["without a type in tools/make_stubs.py:", *errors]))
    files[surface.ROOT / "cygrad" / "__init__.pyi"] = front()
    for path in (surface.ROOT / "cygrad").rglob("*.pyi"):
        if path not in files:
            files[path] = None
    surface.write(files, "--check" in sys.argv[1:])


if __name__ == "__main__":
    main()
