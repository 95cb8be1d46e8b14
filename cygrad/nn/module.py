"""Module, the base of layers and models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from inspect import getattr_static
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad.autograd.recomputation import checkpoint
from cygrad.autograd.variables import remove_grad
from cygrad.core.answers import NoSuch
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.thread_state import is_training
from cygrad.nn.answers import METHODS
from cygrad.nn.call import CallBase, children_changed, kind_of
from cygrad.nn.state import cast, children_first, freeze, join, load, state_of, text, unfreeze
from cygrad.nn.waiting import (
    MAKING, assignment, first_call, is_waiting, make, registered_again, remember_place, wait,
)

if TYPE_CHECKING: from cygrad.nn.summary import Summary


class LoadResult(NamedTuple):
    """What `Module.load_state_dict` did not load: names that the state lacks, and names that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class HookHandle:
    """A registered hook. `remove()` removes it; as a context manager it is removed at the end of the scope."""

    def __init__(self, hooks: dict[object, Any], key: object):
        self._hooks, self._key = hooks, key         # (the dict does not refer to the handle, which would be a cycle)

    def remove(self) -> None:
        """Remove the hook. Removing it again does nothing."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, kind=None, value=None, traceback=None) -> None:
        self.remove()


class Module(CallBase):
    """The base of layers and models. A subclass assigns its parts to attributes in `__init__` and computes in
    `forward`; calling the module calls `forward`:

        class MLP(nn.Module):
            def __init__(self):
                self.hidden = nn.Linear(2, 16)
                self.last = nn.Linear(16, 1)

            def forward(self, x):
                return self.last(cg.tanh(self.hidden(x)))

    A variable that is assigned to an attribute becomes a parameter, and a module a child; both are ordinary attributes.
    A recorded result and a plain tensor are not registered: `register_buffer` registers a tensor that is not trained.
    Lists of modules belong in ModuleList. Calling `super().__init__()` is allowed and not necessary.

    One parameter may be an attribute of several modules (weight tying). It is listed, counted and updated once, under
    its first name; a state_dict has it under each name.

    Until `train()` or `eval()` is called, a module follows the mode of the thread (record() sets train mode). After it,
    the layers that depend on the mode raise RuntimeError if the thread is in the other one.

    Copies and pickles have no hooks. Tied parameters stay tied in them."""

    def forward(self, *args, **kwargs):
        """Compute the result. Subclasses implement it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward; implement forward(self, ...) in the class")

    # ---- attributes --------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        kind = kind_of(value)
        if isinstance(value, Module): self._register(self._modules, name, value, value)
        elif kind == "variable" or kind == "frozen": self._register(self._parameters, name, value, None)
        else:
            if value is not None: self._check_replacement(name, value, kind)
            elif name in self._modules:
                self._modules[name] = None
                children_changed()
            if not self._pending or not registered_again(self, name, value): super().__setattr__(name, value)

    def _check_replacement(self, name, value, kind):
        """Raise TypeError if a registered attribute would become something else."""
        if name in self._parameters:
            raise TypeError(f"{type(self).__name__}.{name} is a parameter and cannot become {described(value)}; assign "
                            f"nn.Parameter(data) or None, write into it with {name}.detach().copy_(value), or delete "
                            f"it first")
        if name in self._modules:
            raise TypeError(f"{type(self).__name__}.{name} is a module and cannot become {described(value)}; assign a "
                            f"module or None, or delete it first")
        if name in self._buffers and kind is None:
            raise TypeError(f"{type(self).__name__}.{name} is a buffer and cannot become {described(value)}; assign a "
                            f"tensor or None, or delete it first")

    def _check_name(self, name):
        """Raise ValueError if a parameter, buffer or module cannot have this name."""
        if not isinstance(name, str) or not name or "." in name:
            raise ValueError(f"{type(self).__name__}: the name of a parameter, buffer or module must be a string "
                             f"without dots, got {described(name)}")
        found = getattr(type(self), name, None)
        reserved = hasattr(type(getattr_static(type(self), name, None)), "__set__")      # (properties, _modules, ...)
        if reserved or callable(found) and not isinstance(found, type):
            raise ValueError(f"{type(self).__name__}.{name} is a method or a property of the class, so it cannot be "
                             f"the name of a parameter, buffer or module; choose another name")

    def _register(self, registry, name, value, note):
        """Make `value` an attribute that is noted in a registry, and in no other."""
        self._check_name(name)
        if is_waiting(value) or self._pending and (name in self._parameters or name in self._buffers):
            with MAKING:
                change = assignment(self, name, value)
                self._put(registry, name, value, note)
                if is_waiting(value): remember_place(value, self, name)
                if change is not None: change.apply()
        else: self._put(registry, name, value, note)

    def _put(self, registry, name, value, note):
        """_register() without the checks."""
        super().__setattr__(name, value)
        if registry is self._modules or name in self._modules: children_changed()
        for other in (self._parameters, self._buffers, self._modules):
            if other is not registry: other.pop(name, None)
        registry[name] = note

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in self._modules: children_changed()
        for registry in (self._parameters, self._buffers, self._modules): registry.pop(name, None)

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Make `param` a parameter of this name; None means that the module does without it, and it is not listed. A
        tensor that is not a variable becomes a frozen parameter. Raises TypeError for a recorded result, for a tensor
        of integers or bools, and for anything else."""
        kind = kind_of(param)
        if param is not None and (kind in (None, "result") or param.dtype.kind != "f"):
            what = "a recorded result" if kind == "result" else described(param)
            advice = "make one with nn.Parameter(data)" if kind in (None, "result") else "use register_buffer"
            raise TypeError(f"register_parameter: {described(name)} must be a variable or None, got {what}; {advice}")
        self._register(self._parameters, name, param, None)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` a buffer of this name: a tensor that is not trained, such as a running mean. With `persistent`
        it is part of the state_dict. Raises TypeError for anything but a tensor or None."""
        if tensor is not None and kind_of(tensor) is None:
            raise TypeError(f"register_buffer: {described(name)} must be a tensor or None, got {described(tensor)}")
        self._register(self._buffers, name, tensor, bool(persistent))

    def register_module(self, name: str, module: Module | None) -> None:
        """Make `module` a child of this name; the same as assigning it to an attribute. Raises TypeError for anything
        but a module or None."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"register_module: {described(name)} must be a module or None, got {described(module)}")
        self._register(self._modules, name, module, module)

    add_module = register_module

    # ---- traversal ---------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of each child; a shared one once."""
        seen = set()
        for name, module in self._modules.items():
            if module is None or id(module) in seen: continue
            seen.add(id(module))
            yield name, module

    def children(self) -> Iterator[Module]:
        """Yield each child once."""
        return (module for _, module in self.named_children())

    def named_modules(self, memo: set[int] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) of this module, whose path is `prefix`, and of all modules below it, such as
        "encoder.0.linear1". A shared module is listed once, unless `remove_duplicate` is False; a module that contains
        itself is not listed again inside itself."""
        memo = set() if memo is None else memo      # the modules listed so far, or those that contain this one
        if id(self) in memo: return
        memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None: yield from module.named_modules(memo, join(prefix, name), remove_duplicate)
        if not remove_duplicate: memo.remove(id(self))

    def modules(self) -> Iterator[Module]:
        """Yield this module and all modules below it, each once."""
        return (module for _, module in self.named_modules())

    def _named(self, kind, prefix, recurse, remove_duplicate):
        """Yield (module, name, path, tensor) of the parameters or buffers."""
        seen = set()
        places = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in places:
            for name in getattr(module, kind):
                x = module.__dict__[name]
                if x is None or id(x) in seen: continue
                if remove_duplicate: seen.add(id(x))
                yield module, name, join(path, name), x

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, parameter), such as ("encoder.0.weight", tensor), in the order of assignment; with `recurse`
        also those of modules below. A shared parameter is listed once, under its first name. Frozen ones are listed,
        and those of layers that wait for their sizes, which remain the same objects when they get their values."""
        return ((path, x) for _, _, path, x in self._named("_parameters", prefix, recurse, remove_duplicate))

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield each parameter once. See `named_parameters`."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer); see `named_parameters`."""
        return ((path, x) for _, _, path, x in self._named("_buffers", prefix, recurse, remove_duplicate))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield each buffer once."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.0"; "" is this one. Raises AttributeError if there is none."""
        module = self
        check_path("get_submodule", target)
        for name in target.split(".") if target else ():
            found = module._modules.get(name)
            if found is None:
                names = ", ".join(map(repr, module._modules)) or "none"
                raise AttributeError(f"get_submodule({target!r}): {type(module).__name__} has no child {name!r}; its "
                                     f"children are {names}")
            module = found
        return module

    def get_parameter(self, target: str) -> Tensor:
        """The parameter at a path such as "encoder.0.weight". Raises AttributeError if there is none."""
        return self._at(target, "get_parameter", "_parameters")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "norm.running_mean". Raises AttributeError if there is none."""
        return self._at(target, "get_buffer", "_buffers")

    def _at(self, target, caller, kind):
        check_path(caller, target)
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in getattr(module, kind) or module.__dict__[name] is None:
            names = ", ".join(repr(n) for n in getattr(module, kind) if module.__dict__[n] is not None) or "none"
            raise AttributeError(f"{caller}({target!r}): {type(module).__name__} has no {kind[1:-1]} {name!r}; it has "
                                 f"{names}")
        return module.__dict__[name]

    def _tree(self):
        """The module as a container of its parameters, for cygrad.func: (names, parameters, build)."""
        found = dict(self.named_parameters())
        old = list(map(id, found.values()))
        return list(found), list(found.values()), lambda new: self._with(dict(zip(old, new, strict=True)), {})

    def _with(self, new, made):
        """A module like this one, with other tensors in place of its parameters: `new` has them by the id of these. It
        shares everything else. `made` has the modules so far, by the id of the old ones."""
        if id(self) in made: return made[id(self)]
        other = made[id(self)] = type(self).__new__(type(self))
        state = dict(self.__dict__)
        for name in self._parameters:
            if state[name] is not None: state[name] = new[id(state[name])]
        for name, module in self._modules.items():
            if module is not None: state[name] = module._with(new, made)
        other.__dict__.update(state)
        other._parameters.update(self._parameters)
        other._buffers.update(self._buffers)
        other._modules.update((name, state[name]) for name in self._modules)
        other._mode, other._hooks, other._checkpoint = self._mode, self._hooks, self._checkpoint
        other._pending = self._pending
        return other

    # ---- changes of all parameters -----------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], object]) -> Module:
        """Call `fn(module)` once for every module below, children first, and for this one. Returns this module.

        What fn writes with nn.init or fill_() into the parameters of a layer that waits for its sizes is written when
        the layer has them: first it draws its own values, as without fn, then those of fn, in the order of the calls.
        So the generator is where the first call of the layer finds it, and not where apply() does."""
        for module in children_first(self, set()): fn(module)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or with set_to_none=False to zeros, which take no memory until
        they are written. A solver skips a parameter until a backward pass has reached it again."""
        found, seen = [self], {id(self)}            # (a loop over modules() takes seven times as long)
        for module in found:
            for below in module._modules.values():
                if below is None or id(below) in seen: continue
                seen.add(id(below))
                found.append(below)
            for name in module._parameters:
                x = module.__dict__[name]
                if x is None: continue
                if not set_to_none: x.zero_grad()
                else: remove_grad(x)

    def astype(self, dtype: Any) -> Module:
        """Convert all floating parameters and buffers to `dtype`, float32 or float64. Those of another dtype are
        replaced by new tensors, so give them to a solver again. A new parameter has the grad_req, the stype and the
        hooks of the old one; gradients become zeros, and None stays None. Tied parameters stay tied, frozen ones
        frozen. Parameters that wait for their sizes will have this dtype. Nothing changes if an allocation fails.
        Returns this module. Raises TypeError for another dtype."""
        cast(self, dtype)
        return self

    def freeze(self, *which: str | Callable[[str, Tensor], bool]) -> Module:
        """Freeze parameters: all of them, or those that `which` selects. A frozen parameter has no gradient, operations
        on it are not recorded because of it, and a solver does not move it; it stays a parameter and part of the
        state_dict. `which` has names of parameters, names of modules, which select all parameters below them, and
        functions of (name, parameter) that return whether to freeze it. Returns this module. Raises ValueError for a
        name or a function that selects nothing; then nothing has changed."""
        freeze(self, which)
        return self

    def unfreeze(self, *which: str | Callable[[str, Tensor], bool]) -> Module:
        """Make frozen parameters variables again, with their previous grad_req and stype: all of them, or those that
        `which` selects (see `freeze`). Returns this module."""
        unfreeze(self, which)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """`unfreeze()` all parameters, or `freeze()` them if `requires_grad` is False. Returns this module."""
        return self.unfreeze() if requires_grad else self.freeze()

    # ---- mode --------------------------------------------------------------------------------------------------------

    def train(self, mode: bool | None = True) -> Module:
        """Expect train mode (True) or predict mode (False) in this module and all below. Layers that depend on the mode
        then raise RuntimeError if the thread is in the other one. None: follow the thread again. Returns this
        module."""
        if mode is not None and not isinstance(mode, bool):
            raise TypeError(f"train: mode must be True, False or None, got {described(mode)}")
        for module in self.modules(): module._mode = mode
        return self

    def eval(self) -> Module:
        """Expect predict mode: `train(False)`. Returns this module."""
        return self.train(False)

    @property
    def training(self) -> bool:
        """The mode that `train()` or `eval()` has set, or that of the thread."""
        return is_training() if self._mode is None else self._mode

    def _training(self) -> bool:
        """Whether the thread is in train mode, for layers that depend on it. Raises RuntimeError if train() or eval()
        has set the other mode."""
        training = is_training()
        if self._mode is None or self._mode == training: return training
        called, wanted, found = ("train()", "train_mode", "predict") if self._mode else ("eval()", "predict_mode",
                                                                                        "train")
        raise RuntimeError(f"{type(self).__name__}: {called} was called on this module, but the thread is in {found} "
                           f"mode; call it inside `with cygrad.{wanted}():`, or call train(None), after which it "
                           f"follows the thread")

    # ---- memory ------------------------------------------------------------------------------------------------------

    def checkpoint_(self, on: bool = True, *, keep: str | list[str] | None = None,
                    determinism_check: str = "metadata") -> Module:
        """Call `forward` through `cygrad.checkpoint` from now on, or no longer if `on` is False: its intermediate
        values are not kept for backward, but computed again there. `keep` and `determinism_check` are as there. Call it
        on the blocks of a model: for a whole model, backward would need all values at once. Returns this module."""
        if not isinstance(on, bool): raise TypeError(f"checkpoint_: on must be True or False, got {described(on)}")
        given: dict[str, Any] = {"keep": list(keep) if isinstance(keep, list | tuple | set) else keep,
                                 "determinism_check": determinism_check}
        checkpoint(lambda: None, **given)           # (which checks them)
        self._checkpoint = given if on else None
        if on and self._hooks is None: self._hooks = {}, {}, {}, {}     # (so that the call looks)
        return self

    # ---- calls -------------------------------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> HookHandle:
        """Call `hook(module, args)` before each forward. If it returns something, that replaces the positional
        arguments (a value that is not a tuple is one argument). With `with_kwargs`: `hook(module, args, kwargs)`, which
        returns None or (args, kwargs). `prepend` puts it before other hooks. Returns a handle with `remove()`."""
        return self._add_hook(0, "register_forward_pre_hook", hook, prepend, with_kwargs)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> HookHandle:
        """Call `hook(module, args, result)` after each forward. If it returns something, that replaces the result. With
        `with_kwargs`: `hook(module, args, kwargs, result)`. `prepend` puts it before other hooks. With `always_call` it
        is called also if forward or another hook raises an error, with the result so far, perhaps None; an error of its
        own then becomes a warning. Returns a handle with `remove()`."""
        return self._add_hook(1, "register_forward_hook", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable[[Any, Any], Any], prepend: bool = False) -> HookHandle:
        """Call `hook(module, grad_output)` in each backward pass, when the gradients of the results of a call are
        complete: a tuple of tensors, with None for what is not a tensor and for what no gradient reaches. If it returns
        a tuple (or a tensor, if there is one result), that replaces them. `prepend` puts it before other hooks. Returns
        a handle with `remove()`, which does not change calls that were recorded before."""
        return self._add_hook(2, "register_full_backward_pre_hook", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[[Any, Any, Any], Any], prepend: bool = False) -> HookHandle:
        """Call `hook(module, grad_input, grad_output)` in each backward pass, when the gradients of the positional
        arguments of a call are complete: tuples of tensors, with None for what is not a tensor; those of this call
        only, if an argument is used elsewhere too. If it returns a tuple (or a tensor, if there is one argument), that
        replaces grad_input. If no gradient flows to the arguments, it is called when grad_output is complete, with None
        for each argument. `prepend` puts it before other hooks.

        forward gets new tensors that share the memory of the arguments, and the caller gets such tensors of the
        results; to write to them in place while recording raises InplaceError. A call with such hooks cannot be
        captured. Returns a handle with `remove()`, which does not change calls that were recorded before."""
        return self._add_hook(3, "register_full_backward_hook", hook, prepend)

    def _add_hook(self, place, caller, hook, prepend, with_kwargs=False, always_call=False):
        if not callable(hook): raise TypeError(f"{caller} takes a function, got {described(hook)}")
        if self._hooks is None: self._hooks = {}, {}, {}, {}
        hooks = self._hooks[place]
        key = object()
        others = dict(hooks) if prepend else {}
        if prepend: hooks.clear()
        hooks[key] = hook, with_kwargs, always_call
        hooks.update(others)
        return HookHandle(hooks, key)

    def _watched_call(self, args, kwargs):
        """The call of a module that has hooks, waits for its sizes or is checkpointed, or in a memory profile."""
        before, after, *backward = self._hooks or ({}, {}, {}, {})
        if self._hooks and not any(self._hooks) and self._checkpoint is None: self._hooks = None    # all were removed
        watched = None
        if any(backward):
            from cygrad.nn.backward_hooks import WatchedCall

            watched = WatchedCall(self, *([f for f, *_ in hooks.values()] for hooks in backward))
        called, y = set(), None
        try:
            for hook, with_kwargs, _ in tuple(before.values()):
                found = hook(self, args, kwargs) if with_kwargs else hook(self, args)
                if found is None: continue
                if not with_kwargs: args = found if isinstance(found, tuple) else (found,)
                elif isinstance(found, tuple) and len(found) == 2: args, kwargs = found
                else:
                    raise TypeError(f"a forward pre-hook with kwargs of {type(self).__name__} returned "
                                    f"{described(found)}; it may return None or (args, kwargs)")
            if self._pending:
                with MAKING:                        # (the first calls of several threads make the parameters once)
                    if self._pending: first_call(self, args, kwargs)
            if watched is not None: args = watched.take(args)
            if self._checkpoint is None: y = self.forward(*args, **kwargs)
            else: y = checkpoint(lambda: self.forward(*args, **kwargs), **self._checkpoint)
            for key, (hook, with_kwargs, _) in tuple(after.items()):
                called.add(key)
                found = hook(self, args, kwargs, y) if with_kwargs else hook(self, args, y)
                if found is not None: y = found
            return y if watched is None else watched.give(y)
        except Exception:
            for key, (hook, with_kwargs, always_call) in tuple(after.items()):
                if not always_call or key in called: continue
                try: found = hook(self, args, kwargs, y) if with_kwargs else hook(self, args, y)
                except Exception as e:
                    warnings.warn(f"a forward hook of {type(self).__name__} with always_call=True raised "
                                  f"{type(e).__name__} after another error: {e}", stacklevel=2)
                else: y = y if found is None else found
            raise

    # ---- unknown sizes (see waiting.py) ------------------------------------------------------------------------------

    def _settle(self, size):
        """Make the parameters and buffers that are registered with None, for a size that is given."""
        make(self, size)

    def _wait(self, one, other):
        """Let them wait for a size instead. `one` and `other` are two sizes that the layer could have."""
        wait(self, one, other)

    def _dtype_of(self, name):
        """The dtype of a parameter or buffer that waits."""
        return self._how["dtype"]

    # ---- state -------------------------------------------------------------------------------------------------------

    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """The parameters and persistent buffers by path, as detached tensors that share memory with the module: later
        updates change them, so copy them to keep a state. A tied parameter is listed under each of its names, with the
        same tensor. That of a layer that waits for its sizes has no values until the layer has them."""
        return state_of(self, prefix)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Copy a state into the parameters and buffers, in place. The values may be tensors, NumPy arrays and PyTorch
        tensors; each must have the shape and dtype of its parameter. Layers that wait for their sizes take them from
        the state; where it has none either, they go on waiting. With `strict` the names must agree; for a tied
        parameter, one of its names suffices, and if there are several, their values must agree. Without `strict`,
        missing and unexpected names are skipped. Returns (missing_keys, unexpected_keys).

        Raises ValueError that lists everything that is missing, unexpected, or of another shape or dtype, and TypeError
        for values that are not arrays; then nothing has changed."""
        return LoadResult(*load(self, state_dict, strict))

    def __getstate__(self) -> dict[str, Any]:
        return {"attributes": dict(self.__dict__), "parameters": dict(self._parameters), "buffers": dict(self._buffers),
                "modules": list(self._modules), "mode": self._mode, "pending": self._pending,
                "checkpoint": self._checkpoint}

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = state["attributes"]
        self.__dict__.update(attributes)
        self._parameters.update(state["parameters"])
        self._buffers.update(state["buffers"])
        self._modules.update((name, attributes[name]) for name in state["modules"])
        children_changed()
        self._mode, self._pending = state["mode"], state["pending"]
        if state.get("checkpoint") is not None: self.checkpoint_(**state["checkpoint"])
        for name in self._parameters:               # the copy of a frozen parameter is an ordinary tensor
            x = attributes[name]
            if kind_of(x) == "plain": x.requires_grad_().drop_grad()
        for name in (*self._parameters, *self._buffers):
            if is_waiting(attributes[name]): remember_place(attributes[name], self, name)

    def summary(self, *inputs: Any, **kwargs: Any) -> Summary:
        """Run the module on an example and list for each module that is called the shape of its result, its parameters,
        the bytes that it keeps for backward after the forward pass, and its FLOPs. The result prints as a table. The
        run is recorded in train mode (predict mode after eval()); buffers and generators are as before it. Layers that
        wait for their sizes take them from the example. A buffer that several nodes keep counts for the first one.

        FLOPs are those of products, where a multiplication and an addition count as 2: 2 N in out for Linear with N
        rows, 2 N out in1 (in2 + 1) for Bilinear, 2 out k for a convolution with `out` elements in its result, each of
        which sums k products. Elementwise work and reductions do not count."""
        from cygrad.nn.summary import summarize

        return summarize(self, inputs, kwargs)

    def _flops(self, *args, y, **kwargs):
        """The FLOPs of the products of a call without those of other modules, for its arguments and its result."""
        return 0

    # ---- text --------------------------------------------------------------------------------------------------------

    _shown: tuple[str, ...] = ()        # the attributes that extra_repr() lists

    def extra_repr(self) -> str:
        """The arguments of the layer in its repr."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)

    @recursive_repr()
    def __repr__(self) -> str:
        return text(self)

    locals().update((name, NoSuch("Module", name, sentence)) for name, sentence in METHODS.items())

    def __dir__(self):
        return [name for name in super().__dir__() if name not in METHODS]


def check_path(caller, path):
    if not isinstance(path, str):
        raise TypeError(f"{caller}: the path must be a string such as \"encoder.0\", got {described(path)}")
