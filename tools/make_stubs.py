"""Write the type stubs: python tools/make_stubs.py [--check] [--build]

Git has the stubs of the public modules: cygrad/__init__.pyi and those of its packages. The build writes the others
with --build, into the tree or among the files of a wheel (setup.py). There is one .pyi for each compiled module, and
one for each Python module with public names. Names, signatures and types are those of the running package: a
function's types are its annotations. In an annotation, the names of ALIASES have no underscore (`Data` becomes
`_Data`). Methods of compiled classes have no annotations at run time, so their types are listed here, and so are those
of the few functions whose result depends on their arguments. A public parameter or result without a type ends the run
with its name, and so does an unused entry of the lists."""

import enum
import inspect
import re
import sys

import surface
from cygrad.memory.profiling import AXES, COLUMNS
from cygrad.memory.rows import BY
from cygrad.optim import Solver
from surface import Answer

NUMBERS = {"int", "float", "bool", "complex"}

PARAMETERS = {              # `function.parameter`, or the name of a parameter without annotation, in any function
    "plan.f": "Callable[..., object]", "plan.example": "Any",
    "checkpoint.f": "Callable[..., Any]",
    "determinism_check": "Literal['metadata', 'hash']", "checkpoint.keep": "str | Sequence[str] | None",
    "operands": "tuple[str | None, ...]", "as_row.attributes": "Any",
    "kept.arguments": "Mapping[str, Any]", "wanted": "Sequence[int]",
    "gradcheck.f": "Callable[..., Tensor | tuple[Tensor, ...]]", "gradcheck.inputs": "Any",
    "atol": "float", "rtol": "float", "order": "int", "persistent": "bool", "seed": "int",
    "capped": "bool", "forward": "bool",
    "eps": "float", "lr": "float", "clip_norm": "float", "clip_value": "float", "rate": "float",
    "scale_grad.scale": "float",
    "reset": "bool", "retain_state": "bool", "keys": "str | Iterable[str]", "param_group": "dict[str, Any]",
    "update_pre_hook": "Callable[[], object] | None", "update_post_hook": "Callable[[], object] | None",
    "closure": "Callable[[], Any] | None", "states": "Mapping[str, Any]", "state_dict": "Mapping[str, Any]",
    "create_graph": "bool", "endpoint": "bool",
    "x": "_Data",
    "dtype": "npt.DTypeLike | None",
    "flag": "bool", "train_mode": "bool | None",
    "gradient": "_Head",
    "gradients": "_Head | Sequence[_Head]",
    "inputs": "Tensor | Sequence[Tensor] | None",
    "n": "int", "output_nr": "int",
    "given": "float | Sequence[int]", "high": "float | None", "loc": "float | None",
    "low": "float | None", "integers.high": "int | None", "integers.low": "int | None",
    "categorical.logits": "_Data | None", "categorical.probs": "_Data | None", "categorical.axis": "int",
    "choice.a": "int | _Data", "choice.replace": "bool", "choice.p": "_Data | None", "shuffle.axis": "int",
    **{f"{law}.given": "_Data | Sequence[int]" for law in ("exponential", "gamma", "gumbel", "poisson")},
    **dict.fromkeys((
        "exponential.scale gamma.a gamma.scale gumbel.loc gumbel.scale poisson.lam truncated_normal.low "
        "truncated_normal.high truncated_normal.loc truncated_normal.scale").split(), "float | _Data | None"),
    "bernoulli.p": "float | None", "permutation.x": "int | _Data", "scale": "float | None",
    "size": "int | Sequence[int] | None",
    "ctx": "FunctionContext", "save_for_backward.tensors": "Tensor | None",
    "deduplicate.op": "Literal['sum', 'mean']",
    "mark_non_differentiable.outputs": "Tensor", "mark_dirty.inputs": "Tensor",
    "setup_context.inputs": "tuple[Any, ...]", "setup_context.output": "Any",
    "set_materialize_grads.value": "bool", "forward.inputs": "Any", "backward.grads": "Tensor | None",
    "apply.inputs": "Any", "Handle.hooks": "Any", "Handle.key": "object",
    "disable_saved_tensors_hooks.message": "str", "set_grad_enabled.mode": "bool",
    "pack": "Callable[[Tensor], Any]", "unpack": "Callable[[Any], Tensor]",
    "register_prehook.f": "Callable[[tuple[Tensor | None, ...]], object]",
    "register_node_hook.f": "Callable[[tuple[Tensor | None, ...], tuple[Tensor | None, ...]], object]",
    "listener": "Callable[[_Event], object] | None",
    "node": "Node",
    "outputs": "Tensor | Sequence[Tensor]", "mode": "Literal['stdout', 'dicts']",
    "why.t": "Tensor", "limit.bytes": "int | str", "budget.bytes": "int | str",
    "offload.directory": "str | PathLike[str]", "offload.smallest": "int | str",
    "budget.offload": "str | PathLike[str] | None",
    **{f"MemoryLimitError.{name}": "str" for name in "message operation line".split()},
    **{f"MemoryLimitError.{name}": "int" for name in "requested limit fits".split()},
    "table.by": f"Literal{[*COLUMNS]}", "compare.by": f"Literal{[*BY]}", "plot.axis": f"Literal{[*AXES]}",
    "path": "str | PathLike[str]", "compare.other": "profile | str | PathLike[str]",
    "GradientSlice.indices": "_Data", "GradientSlice.values": "_Data",
    "GradientSlice.shape": "int | Sequence[int] | None",
    "parameters": "_Parameters",
    "retain_graph": "bool | None",
    "shape": "int | Sequence[int]",
}

RESULTS = {                 # `Class.member` or the function's name, for results without annotation
    "plan": "profile", "checkpoint": "Any", "budget.floor_bytes": "int", "budget.recomputed": "Recomputed",
    "budget.planned": "int | None",
    **{f"{scope}.{name}_bytes": "int" for scope in ("budget", "offload") for name in "written read file".split()},
    **{f"{scope}.waited_seconds": "float" for scope in ("budget", "offload")},
    "Solver.fuse_into_backward": "FusedUpdates", "Solver.fused": "FusedUpdates | None",
    "Operator.as_row": "tuple[str, dict[str, Any]]", "Operator.kept": "tuple[list[int], list[int]]",
    **{f"Operator.{name}": "str" for name in ("operands", "outputs", "row")}, "Operator.functions": "dict[str, str]",
    "ensure_dense": "Tensor | None", "GradientSlice.to_dense": "Tensor",
    **{f"GradientSlice.{name}": "GradientSlice" for name in "deduplicate copy".split()},
    **{f"GradientSlice.{name}": "Tensor" for name in "indices values".split()},
    "GradientSlice.shape": "tuple[int, ...] | None", "GradientSlice.dtype": "np.dtype[Any]",
    "GradientSlice.nbytes": "int",
    **{f"Generator.{name}": "Tensor" for name in ("normal uniform bernoulli integers permutation choice categorical "
       "exponential gumbel gamma poisson truncated_normal").split()}, "Generator.shuffle": "None",
    "Generator.state": "tuple[int, int]",
    "GradientEdge.node": "Node", "GradientEdge.output_nr": "int",
    "Node.name": "str", "Node.next_functions": "tuple[tuple[Node | None, int], ...]", "Node.saved_bytes": "int",
    "Node.register_hook": "Handle", "Node.register_prehook": "Handle", "Handle.remove": "None",
    "Function.forward": "Any", "Function.setup_context": "None", "Function.backward": "Any", "Function.apply": "Any",
    "FunctionContext.saved_tensors": "tuple[Tensor | None, ...]",
    "FunctionContext.needs_input_grad": "tuple[bool, ...]",
    **{f"FunctionContext.{name}": "None"
       for name in ("save_for_backward", "mark_non_differentiable", "mark_dirty", "set_materialize_grads")},
    **{f"GradientCollector.{name}": "None" for name in ("backward", "close", "zero_gradients")},
    "Operator.name": "str", "Operator.n_unpromoted": "int",
    "Operator.numpy": "Any",
    **{f"Operator.{flag}": "bool"
       for flag in "promotes promotes_to_float zero_derivative fused differentiable mode_dependent elementwise views "
       "data_dependent_shape shows_part signs diagonal joint_formula gradient_is_view overwrites_gradient".split()},
    "Solver.get_parameters": "dict[str, Tensor]", "Solver.learning_rate": "float", "Solver.set_learning_rate": "None",
    **{f"Solver.{name}": "None" for name in (
       "add_param_group clear_parameters clip_grad_by_norm clip_grad_by_value load_state_dict load_states "
       "remove_parameters save_states scale_grad set_parameters set_states update weight_decay zero_grad").split()},
    **{f"Solver.{name}": "bool" for name in
       "check_inf_grad check_nan_grad check_inf_or_nan_grad weight_decay_is_fused".split()},
    "Solver.lr": "float", "Solver.clip_grad_by_global_norm": "float", "Solver.step": "Any",
    "Solver.get_states": "dict[str, SolverState]", "Solver.state_dict": "dict[str, Any]",
    "Solver.param_groups": "list[ParameterGroup]",
    "Tape.nodes": "int", "Tape.saved_bytes": "int",
    "Tensor.T": "Tensor", "Tensor.mT": "Tensor",
    "Tensor.dtype": "np.dtype[Any]", "Tensor.fresh_grad": "bool", "Tensor.grad": "Tensor | None",
    "Tensor.grad_fn": "Node | None", "Tensor.grad_req": "Literal['write', 'add', 'null']", "Tensor.is_leaf": "bool",
    "Tensor.itemsize": "int", "Tensor.nbytes": "int", "Tensor.ndim": "int",
    "Tensor.requires_grad": "bool", "Tensor.shape": "tuple[int, ...]",
    "Tensor.size": "int", "Tensor.strides": "tuple[int, ...]", "Tensor.version": "int",
    "Tensor.backward": "None",
    "scope.keep": "Tensor",
    "Failure.failed": "bool",
    "gradcheck": "Literal[True]",
    "get_include": "str",
    "show_config": "dict[str, Any] | None",
    "profile.peak_bytes": "int", "profile.at_peak": "list[PeakRow]", "profile.allocations": "list[Site]",
    "profile.table": "str", "profile.plot": "None", "profile.save": "None", "profile.flame": "None",
    "profile.advice": "list[Advice]", "profile.growth": "list[Growth]", "profile.compare": "Comparison",
    "why.names": "list[str]", "track.peak_bytes": "int", "track.leaked_bytes": "int",
}

INSTANCE = {                # attributes that __init__ makes, so the class has none of them
    "MemoryLimitError": ["requested: int", "limit: int", "fits: int", "operation: str", "line: str"],
    "why": ["bytes: int", "category: str", "holders: int", "entries: list[tuple[int, str]]",
            "made_by: str", "line: str"],
    "Failure": ["allocations: int | None"],
    "CallBase": ["_parameters: dict[str, Any]", "_buffers: dict[str, Any]", "_modules: dict[str, Any]",
                 "_hooks: Any", "_mode: bool | None", "_pending: bool"],
    "optim.solver.Solver": ["def _saved(self) -> dict[str, Any]: ...",
                            "def _assign(self, lr: float, base: Any, groups: list[Any], given: dict[str, Any]) "
                            "-> None: ..."],
    "Row": ["name: str", "family: str", "late: bool", "methods: tuple[str, ...]",
            "aliases: tuple[str, ...]", "public: bool"],
}

DECLARED = {                # declarations in operator classes: of Elementwise, and texts or dicts of them
    "integers": "Any", "reads": "Any",
}


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

WHOLE = {                   # complete stubs of functions with more than one result type
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
    "inference_mode": _SCOPE.format(name="inference_mode", parameters="mode: bool = True", result="Scope",
                                    first="mode"),
}

DUNDERS = {                 # syntax; `{cls}` is the class
    **{f"__{op}__": "(self, y: _Operand, /) -> Tensor" for op in
       "add sub mul truediv floordiv mod matmul pow radd rsub rmul rtruediv rfloordiv rmod rmatmul rpow lt le gt ge "
       "and or xor rand ror rxor lshift rshift rlshift rrshift".split()},
    **{f"__i{op}__": "(self, y: _Operand, /) -> Self" for op in "add sub mul truediv floordiv mod".split()},
    **{f"__{op}__": "(self, y: _Operand, /) -> _Pair" for op in ("divmod", "rdivmod")},
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
    "__array_namespace__": "(self, *, api_version: str | None = None) -> Any",
    "__array_ufunc__": "(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any",
    "__array_function__": "(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any",
    "__dlpack_device__": "(self) -> tuple[int, int]",
    "__dlpack__": "(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, "
                  "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any",
    "__copy__": "(self) -> Tensor", "__format__": "(self, spec: str) -> str",
    "__next__": "(self) -> Any", "__await__": "(self) -> Any",
    "__enter__": "(self) -> {entered}",
    "__exit__": "(self, kind: object = None, value: object = None, traceback: object = None) -> None",
    "CallBase.__call__": "(self: _Forward[_In, _Out], *args: _In.args, **kwargs: _In.kwargs) -> _Out",
    **dict.fromkeys(("__call__", "Scope.__call__"), "(self, f: _F) -> _F"),
    "__reduce__": "(self) -> Any", "__reduce_ex__": "(self, protocol: Any, /) -> Any",
    "__getstate__": "(self) -> Any", "__setstate__": "(self, state: Any) -> None",
    "__deepcopy__": "(self, memo: Any) -> Tensor",
}
ENTERED = {"Scope": "Tape | None", "events": "list[_Event]", "Failing": "Failure", "assert_no_leak": "None",
           "Replacing": "BinaryIO",
           **dict.fromkeys(("planning", "writes_into"), "None")}       # what `with` gives; of other classes Self
SILENT = {                  # of every class, or without meaning for a type checker; 3.12 added the buffer protocol
    f"__{name}__" for name in "new doc module dict weakref qualname delitem repr str slots annotations firstlineno "
    "static_attributes getattr getattribute setattr delattr buffer release_buffer pyx_vtable reduce_cython "
    "setstate_cython test".split()}
OVERRIDES = {"__eq__", "__ne__"}                    # object declares a bool

ALIASES = {                 # name: definition; the tables below list names to import
    "_GradReq": "_GradReq: TypeAlias = Literal['write', 'add', 'null']",
    "_Event": "_Event: TypeAlias = tuple[str, int, int, str]",
    "_Operand": "_Operand: TypeAlias = Tensor | float | npt.NDArray[Any] | np.generic",
    "_Pair": "_Pair: TypeAlias = tuple[Tensor, Tensor]",
    "_float": "_float: TypeAlias = float",
    "_Head": "_Head: TypeAlias = Tensor | npt.NDArray[Any] | float | None",
    "_Data": "_Data: TypeAlias = Tensor | npt.ArrayLike",
    "_Parameters": "_Parameters: TypeAlias = (Tensor | Mapping[str, Tensor] | Iterable[Tensor] | "
                   "Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]])",
    "_Rate": "_Rate: TypeAlias = float | _Parameters",
    "_F": "_F = TypeVar('_F', bound=Callable[..., Any])",
    "_In": "_In = ParamSpec('_In')",
    "_Out": "_Out = TypeVar('_Out', covariant=True)",
    "_Forward": "class _Forward(Protocol[_In, _Out]):\n    def forward(self, *args: _In.args, "
                "**kwargs: _In.kwargs) -> _Out: ...",        # a call takes and gives what forward does
    "_Recording": "class _Recording(Scope):\n    def __enter__(self) -> Tape: ...",
}
SHORT = re.compile(rf"(?<![\w.'])({'|'.join(name[1:] for name in ALIASES if name != '_float')})\b")
SOURCES = {
    "os": ["PathLike"],
    "collections.abc": ["Callable", "Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence"],
    "typing": ["Any", "BinaryIO", "Literal", "NamedTuple", "Never", "ParamSpec", "Protocol", "Self", "TypeAlias",
               "TypedDict", "TypeVar", "Unpack", "final", "overload"],
    "typing_extensions": ["disjoint_base"],
}


class Stub:
    """The stub of one module. `untyped` collects public names without a type."""

    used = set()                                    # the entries of PARAMETERS and RESULTS that stubs have used

    def __init__(self, module, shown, untyped):
        self.module = module
        self.shown = shown                          # ids of public objects, which need a type for everything
        self.untyped = untyped
        self.package = hasattr(module, "__path__")
        self.lines = []

    def source(self, name, value):
        """The module that defines a public object of this package."""
        made = getattr(value, "__module__", None)
        if made and (made.startswith("cygrad.") or inspect.isclass(value)): return made
        inner = self.module.__name__ + "."
        return next(n for n, m in surface.modules().items() if n.startswith(inner) and name in vars(m))

    def default(self, value):
        if isinstance(value, (bool, int, float, str, type(None))): return repr(value)
        return "..."

    def annotated(self, annotation):
        """The text of an annotation, with the names of ALIASES as the stubs have them."""
        plain = isinstance(annotation, type) and not hasattr(annotation, "__args__")
        text = annotation.__name__ if plain else re.sub(r"\b(typing|collections\.abc)\.", "", str(annotation))
        return SHORT.sub(r"_\g<0>", text)

    def parameter_type(self, owner, parameter, strict):
        if parameter.annotation is not inspect.Parameter.empty: return self.annotated(parameter.annotation)
        if not strict: return "Any"
        for key in (f"{owner}.{parameter.name}", parameter.name):
            if key in PARAMETERS:
                self.used.add(key)
                return PARAMETERS[key]
        self.untyped.append(f"{self.module.__name__}: parameter {parameter.name!r} of {owner}: PARAMETERS")
        return "Any"

    def parameters(self, owner, parameters, strict, method=False):
        out, star, parameters, compiled = [], False, list(parameters), surface.is_compiled(self.module)
        for i, p in enumerate(parameters):
            if i == 0 and (method or p.name == "self"):     # functions that are also Tensor methods call it x
                out.append(p.name if method else f"{p.name}: Any")
                continue
            if p.kind is p.VAR_POSITIONAL:
                # *shape and *axes are arguments; *args and *_ exist only to raise a helpful error
                kind = "Never" if strict and p.name in ("args", "_") else self.parameter_type(owner, p, strict)
                out.append(f"*{p.name}: {kind}")
                star = True
                continue
            if i and not compiled and parameters[i - 1].kind is p.POSITIONAL_ONLY is not p.kind: out.append("/")
            if p.kind is p.VAR_KEYWORD:
                typed = p.annotation is not p.empty and self.annotated(p.annotation)
                out.append(f"**{p.name}: {'Never' if p.name == '__' else typed or 'Any'}")
                continue
            if p.kind is p.KEYWORD_ONLY and not star:
                out.append("*")
                star = True
            kind = self.parameter_type(owner, p, strict)
            if p.default is None and "None" not in kind and kind != "Any": kind += " | None"
            out.append(f"{p.name}: {kind}" + ("" if p.default is p.empty else f" = {self.default(p.default)}"))
        if parameters and not compiled and parameters[-1].kind is inspect.Parameter.POSITIONAL_ONLY: out.append("/")
        return ", ".join(out)

    def result(self, key, strict, f=None):
        if f is not None and f.return_annotation is not f.empty: return self.annotated(f.return_annotation)
        if not strict: return "Any"
        if key in RESULTS:
            self.used.add(key)
            return RESULTS[key]
        self.untyped.append(f"{self.module.__name__}: the result of {key}: RESULTS")
        return "Any"

    def function(self, name, f):
        strict = id(f) in self.shown
        if name in WHOLE and strict and not self.module.__name__.startswith("cygrad.func."):
            return self.lines.append(WHOLE[name])
        try:
            signature = inspect.signature(f)
        except (TypeError, ValueError):
            return self.lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
        text = self.parameters(name, signature.parameters.values(), strict)
        self.lines.append(f"def {name}({text}) -> {self.result(name, strict, signature)}: ...")

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
            self.lines += [f"    {field}: {self.annotated(getattr(kind, '__forward_arg__', kind))}"
                           for field, kind in cls.__annotations__.items()]
            return None
        if hasattr(cls, "__total__"):
            self.lines.append(f"class {name}(TypedDict, total=False):")
            self.lines += [f"    {field}: {self.annotated(getattr(kind, '__forward_arg__', kind))}"
                           for field, kind in cls.__annotations__.items()]
            return None
        strict = id(cls) in self.shown
        base = cls.__bases__[0]
        if surface.is_compiled(self.module) and not cls.__flags__ & 1 << 9:         # not a heap type of Python's
            if not cls.__flags__ & 1 << 10: self.lines.append("@final")
            elif cls.__basicsize__ > base.__basicsize__: self.lines.append("@disjoint_base")
        bases = {object: "", tuple: "(tuple[Any, ...])"}.get(base, f"({base.__name__})")
        self.lines.append(f"class {name}{bases}:")
        body = Stub(self.module, self.shown, self.untyped)
        body.lines += INSTANCE.get(name) or INSTANCE.get(f"{self.module.__name__}.{name}".removeprefix("cygrad."), [])
        if issubclass(cls, Solver):                 # settings, which have no value in the class
            body.lines += [f"{key}: {kind}" for key, kind in vars(cls).get("__annotations__", {}).items()]
        for member, value in vars(cls).items(): body.member(name, cls, member, value, strict)
        if "float" in vars(cls):                    # a method of that name hides the type in its class
            body.lines = [re.sub(r"(?<![\w.])float(?![\w(])", "_float", line) for line in body.lines]
        self.lines += ["    " + line for text in body.lines for line in text.split("\n")] or ["    pass"]

    def member(self, owner, cls, name, value, strict):
        key = f"{owner}.{name}"
        python = isinstance(value, staticmethod) or "__init__" not in vars(cls) and surface.embedded(cls) is not None
        if name == "__init__" or name == "__new__" and python:
            parameters = surface.constructor(cls)
            first = "self" if name == "__init__" else "cls"
            text = self.parameters(owner, parameters, strict)
            made = "None" if name == "__init__" else "Self"
            self.lines.append(f"def {name}({', '.join(filter(None, [first, text]))}) -> {made}: ...")
        elif isinstance(value, Answer): pass        # a descriptor for another library's name, which always raises
        elif name.startswith("__") and value is None and name != "__doc__":
            self.lines.append(f"{name}: None")
        elif name in DUNDERS:
            text = DUNDERS.get(key, DUNDERS[name]).format(cls=owner, entered=ENTERED.get(owner, "Self"))
            if not strict and key not in DUNDERS and name not in ("__enter__", "__exit__"):     # public scopes inherit
                text = re.sub(r"(: |-> )[^,()=]+(?=,|\)|$)", r"\1Any", text)
            ignore = "  # type: ignore[override]" if name in OVERRIDES else ""
            self.lines.append(f"def {name}{text}: ...{ignore}")
        elif name in DECLARED and hasattr(cls, "promotes"):
            self.lines.append(f"{name}: {DECLARED[name]}")
        elif name.startswith("_"):
            if strict and name.startswith("__") and name not in SILENT:     # stubtest does not check some of these
                self.untyped.append(f"{self.module.__name__}: {key}: DUNDERS")
        elif surface.is_attribute(value):
            f = getattr(value, "fget", None) or getattr(value, "func", None)
            kind = self.result(key, strict, inspect.signature(f) if inspect.isfunction(f) else None)
            self.lines.append(f"@property\ndef {name}(self) -> {kind}: ...")
            if isinstance(value, property) and value.fset:
                self.lines.append(f"@{name}.setter\ndef {name}(self, value: {kind}) -> None: ...")
        elif surface.is_function(value) or isinstance(value, (staticmethod, classmethod)):
            kind = "static" if isinstance(value, staticmethod) else "class" if isinstance(value, classmethod) else ""
            if kind: self.lines.append(f"@{kind}method")
            f = value.__func__ if kind else value
            signature = inspect.signature(f)
            text = self.parameters(f.__name__, signature.parameters.values(), strict, method=kind != "static")
            self.lines.append(f"def {name}({text}) -> {self.result(key, strict, signature)}: ...")
        else:
            self.constant(name, value)

    def text(self):
        own = surface.own(self.module)
        for name, value in surface.public(self.module).items() if self.package else ():
            if name in own: continue
            if type(value).__module__.startswith("numpy"):
                self.lines.append(f"{name}: {dtype_type(name)}")
                continue
            source = value.__name__.rpartition(".")[0] if inspect.ismodule(value) else self.source(name, value)
            known = inspect.isclass(value) or not hasattr(sys.modules[source], name)    # SGD is an alias of Sgd
            real = getattr(value, "__name__", name).rpartition(".")[2] if known else name
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
        """The imports and aliases of the names that the lines use."""
        body = "\n".join(self.lines)
        used = words(body)
        aliases, seen = [], body
        for name, definition in ALIASES.items():
            if name in used:
                seen += "\n" + definition
                (aliases if name != "_Recording" else self.lines).append(definition)
        out = ["# Written by tools/make_stubs.py; do not edit."]
        if "(enum." in seen: out.append("import enum")
        known = words(seen)
        for source, names in SOURCES.items():
            wanted = [n for n in names if n in known]
            if wanted: out.append(f"from {source} import {', '.join(wanted)}")
        if "np." in seen: out.append("import numpy as np")
        if "npt." in seen: out.append("import numpy.typing as npt")
        for name, source in CLASSES.items():
            if name in known and name not in own and f" as {name}" not in body:
                out.append(f"from {source} import {name}")
        return "\n".join([*out, *aliases]) + "\n\n"


def words(text):
    """The names in a text, without those after a point."""
    return set(re.findall(r"(?<![\w.])\w+", text))


def dtype_type(name):
    """The type of a constant that is a dtype, which has its name."""
    return f"np.dtype[np.{'bool_' if name == 'bool' else name}]"


def front():
    """The stub of cygrad itself: re-exports, dtypes, and the operators of the table."""
    lines = ["# Written by tools/make_stubs.py; do not edit.", "from typing import Any", "import numpy as np", ""]
    last = []
    for name, value in surface.public(surface.cygrad).items():
        if inspect.ismodule(value):
            lines.append(f"from cygrad import {name} as {name}")
        elif type(value).__module__.startswith("numpy"):
            last.append(f"{name}: {dtype_type(name)}")
        elif value.__module__ == "cygrad":
            last.append(f"def {name}() -> {RESULTS[name]}: ...")
        else:
            real = getattr(value, "__name__", name)       # (r_ and c_ are objects)
            lines.append(f"from {value.__module__} import {real} as {name}")
    return "\n".join([*lines, "", *last, "nd: Any", "", "__version__: str", ""])


CLASSES = {}
INLINE = ("cygrad.nn.", "cygrad.nets.", "cygrad.io.", "cygrad.comm.", "cygrad.data.", "cygrad.trainers.",
          "cygrad.estimators.", "cygrad.testing.nets",
          "cygrad.optim.groups", "cygrad.optim.schedule")
# beginnings of the names of Python modules whose types are in their source


def main():
    modules = surface.modules()
    for name, module in modules.items():
        if name.startswith("cygrad.nets."): continue        # whose Operator and GradientSlice are those of nets
        CLASSES.update({n: name for n, v in surface.own(module).items() if inspect.isclass(v) and v.__module__ == name})
    packages = surface.public_packages()
    classes = {known.partition(".")[0] for known in RESULTS}
    shown = {id(v) for m in packages for v in surface.public(m).values()}
    shown |= {id(v) for m in modules.values() for n, v in surface.own(m).items() if n in classes and inspect.isclass(v)}
    files, errors = {}, []
    for name, module in modules.items():
        if name != module.__name__:                         # another name of that module
            files[surface.BUILT.joinpath(*name.split(".")).with_suffix(".pyi")] = (
                f"from {module.__name__} import *\nfrom {module.__name__} import __all__ as __all__\n")
            continue
        if name == "cygrad" or name.startswith(INLINE) and not surface.is_compiled(module): continue
        made = [v for v in surface.own(module).values() if inspect.isclass(v) or surface.is_function(v)]
        if not (surface.is_compiled(module) or module in packages or any(id(v) in shown for v in made)): continue
        path = surface.BUILT.joinpath(*module.__name__.split("."))
        path = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
        files[path] = Stub(module, shown, errors).text()
    errors += [f"{key}: nothing needs this entry" for key in {*PARAMETERS, *RESULTS} - Stub.used - {"get_include"}]
    files[surface.BUILT / "cygrad" / "__init__.pyi"] = front()
    files |= dict.fromkeys({*(surface.BUILT / "cygrad").rglob("*.pyi")} - {*files})
    if "--build" in sys.argv[1:]: files = {path: text for path, text in files.items() if not committed(path)}
    elif errors: sys.exit("\n".join(["types of tools/make_stubs.py:", *errors]))
    surface.write(files, "--check" in sys.argv[1:])


def committed(path):
    """Whether git has the stub: that of a public module."""
    return path.stem == "__init__" or path.parent == surface.BUILT / "cygrad" and path.stem == "graph"


if __name__ == "__main__":
    main()
