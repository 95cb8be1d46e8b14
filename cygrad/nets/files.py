"""Nets in .cg or .safetensors files, whose format is safetensors. Their tensors are the constants of the net; the
metadata has the format, its version and, as JSON, everything else. Reading checks all of that before it makes anything,
and runs nothing."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.handles import Input
from cygrad.core.paths import file_path
from cygrad.nets.checks import check_operator
from cygrad.nets.definition import (
    MAX_DEPTH, NETS_OF, PYTHON, Blob, NetArgument, Operator, check_integer, check_name, function_name, shown_name,
)
from cygrad.nets.gradients import SOLVER, ZERO_GRAD, backward_pass, early_parts
from cygrad.nets.passes import Pass, find, gradient_names
from cygrad.nets.state import state_of
from cygrad.nets.subnets import Subnet, is_python, nets_within, refuse
from cygrad.nets.versions import Versions
from cygrad.io import safetensors, saving
from cygrad.io.entries import NAMES as DTYPE_NAMES
from cygrad.io.files import AGAIN

if TYPE_CHECKING:
    from cygrad.nets.net import Net

FORMAT, VERSION = "cygrad.graph", "1"
LONGEST = 16_000_000        # characters of the JSON text
MOST = 1_000_000            # commas and brackets in it, which bound the objects that Python makes of it
NET = ("name", "training", "inputs", "outputs", "constants", "shapes", "operators", "passes")
NETS = "nets"               # the field of the nets that are arguments, each after those inside it,
TAKES = "takes"             # and the field of the inputs in their order, where that is not the order of use
PASS = ("first", "skip", "ys", "frozen", "own")     # own: whether they are the gradients of the net
INFINITE, SLICE, ELLIPSIS = '{"float": "inf"}', '{"slice": [start, stop, step]}', '{"ellipsis": true}'
OPERATOR = ("type", "inputs", "outputs", "arguments", "name", "is_gradient", "of")


# ---- arguments as JSON -----------------------------------------------------------------------------------------------

def encode(value: Any, nets: Sequence[Any] = ()) -> Any:
    """The value of an argument as JSON has it. A tuple is a list, a float that is not finite {"float": "inf"}, a slice
    {"slice": [start, stop, step]}, and Ellipsis {"ellipsis": true}; one of `nets` is {"net": its position}."""
    if isinstance(value, NetArgument): return {"net": next(k for k, net in enumerate(nets) if net is value)}
    if isinstance(value, float) and not math.isfinite(value): return {"float": repr(value)}
    if isinstance(value, slice): return {"slice": [value.start, value.stop, value.step]}
    if value is Ellipsis: return {"ellipsis": True}
    if isinstance(value, tuple): return [*map(encode, value)]
    return value


def decode(found: Any, depth: int = 0) -> Any:
    """The value that `encode` wrote. Raises ValueError for anything that it does not write."""
    if found is None or isinstance(found, bool | str): return found
    if isinstance(found, int): return check_integer(found, "an int")
    if isinstance(found, float):
        if math.isfinite(found): return found
        raise ValueError(f"a number must be finite; others are written as {INFINITE}")
    if isinstance(found, list):
        if depth == MAX_DEPTH: raise ValueError(f"at most {MAX_DEPTH} lists can be inside each other")
        return tuple(decode(v, depth + 1) for v in found)
    if found == {"ellipsis": True} and found["ellipsis"] is True: return Ellipsis
    text, parts = (found.get(key) if len(found) == 1 else None for key in ("float", "slice"))
    if text in ("inf", "-inf", "nan"): return float(text)
    if isinstance(parts, list) and len(parts) == 3 and all(p is None or type(p) is int for p in parts):
        return slice(*(None if p is None else check_integer(p, "an int of a slice") for p in parts))
    raise ValueError(f"an object must be {INFINITE}, {SLICE} or {ELLIPSIS}, got one with the keys "
                     f"{described([*found])}")


# ---- writing ---------------------------------------------------------------------------------------------------------

def check_suffix(path: Any, who: str) -> str:
    """The name of a file that ends with .cg or .safetensors."""
    name = file_path(path, who, "net.safetensors")
    if os.path.splitext(name)[1].lower() not in (".cg", ".safetensors"):
        raise ValueError(f"{who}: the path of a net must end with .cg or .safetensors, got {cut(repr(name))}")
    return name


def save(net: "Net", path: Any, weights: Any) -> None:
    """As Net.save."""
    name = check_suffix(path, "Net.save")
    if not isinstance(weights, bool): raise TypeError(f"Net.save: weights must be a bool, got {described(weights)}")
    bound = weights_of(net) if weights else {}
    nets = nets_within(net.operators)
    for k, operator in enumerate(net.operators):
        if is_python(operator):
            called = "a Python function" if operator.function is None else function_name(operator.function[0])
            raise ValueError(f"Net.save: operator {k} ({operator.type}) calls {called}, and a file holds no functions; "
                             f"save a net without it")
    text = json.dumps(described_nets(net, nets, bound), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(text) > LONGEST or structure(text) > MOST:
        raise ValueError(f"Net.save: the definitions of a net take at most {LONGEST:,} characters and {MOST:,} values, "
                         f"got {len(text):,} and about {structure(text):,}; save several nets")
    tensors = {key: value for key, value in net.constants.items() if isinstance(value, Tensor)}
    for k, inner in enumerate(nets):
        tensors |= {prefix(k) + key: value for key, value in inner.net.constants.items() if isinstance(value, Tensor)}
    tensors |= {key: x.detach() for key, x in bound.items()}
    saving.write(name, tensors, {"format": FORMAT, "version": VERSION, "net": text}, "Net.save")


def weights_of(net: "Net") -> dict[str, Tensor]:
    """The tensors outside that operators read, which are constants of a file. Raises ValueError for an operator that
    writes one, or its .grad."""
    bound = net.bindings
    delivers = {id(p.operators[0]) for p in net.passes if p.kind == "backward"}
    for k, o in enumerate(net.operators):
        what = "changes parameters" if o.type in (SOLVER, ZERO_GRAD) else "begins a backward pass into .grad" if id(
            o) in delivers else ""
        written: list[Any] = [name for name in o.outputs if name in bound]
        if not what and o.arguments.get("inplace") and o.outputs:
            root, version = Versions(net.operators[:k]).place(o.outputs[0]).memory.root
            written += [root] if version == 0 and root in bound else []
        if written: what = f"writes {described(str(written[0]))}, a tensor outside"
        if what:
            raise ValueError(f"Net.save: operator {k}, {cut(repr(o))}, {what}; with weights=True these are constants "
                             f"of the file; capture the forward pass alone, in predict mode, or pass weights=False")
    read = {name for o in net.operators for name in o.inputs}
    return {name: x for name, x in bound.items() if name in read}


def prefix(k: int) -> str:
    """What begins the names of the tensors of net k. (No name of a blob begins with a space.)"""
    return f" {NETS} {k} "


def described_nets(net: "Net", nets: Sequence[Subnet], bound: Mapping[str, Tensor] = MappingProxyType({})) -> dict[
        str, Any]:
    """The definitions of a net, and of those that are arguments of its operators. `bound` are further constants."""
    found = described_net(net, nets, bound)
    takes = *net.inputs, *(name for name in found["inputs"] if name in net.bindings)
    if [*takes] != found["inputs"]: found[TAKES] = takes
    if nets: found[NETS] = [{**described_net(n.net, nets), TAKES: n.inputs} for n in nets]
    return found


def described_net(net: "Net", nets: Sequence[Subnet] = (), bound: Mapping[str, Tensor] = MappingProxyType({})) -> dict[
        str, Any]:
    """The definitions of a net as JSON has them."""
    constants = [{"name": key} if isinstance(value, Tensor) else {"name": key, "value": encode(value)}
                 for key, value in {**net.constants, **bound}.items()]
    places = {id(o): k for k, o in enumerate(net.operators)}
    state = state_of(net)
    operators = [{"type": o.type, "inputs": o.inputs, "outputs": o.outputs,
                  "arguments": {key: encode(value, nets) for key, value in o.arguments.items()},
                  "name": o.name, "is_gradient": o.is_gradient, "of": places.get(id(o.of))} for o in net.operators]
    passes = [{"first": k, "skip": k - len(p.forward), "ys": {name: head for (name, _), head in p.heads},
               "frozen": sorted(map(str, p.frozen)), "own": p.gradients == state.gradients}
              for p in net.passes if (k := find(net.operators, p)) is not None]
    return {"name": net.name, "training": net.training, "inputs": inputs_of(net, bound), "outputs": state.assigned,
            "constants": constants, "shapes": read_shapes(net), "operators": operators, "passes": passes}


def inputs_of(net: "Net", bound: Mapping[str, Tensor]) -> list[str]:
    """The inputs of a net in a file: also the blobs that stand for tensors from outside, of which a file knows only the
    names, but for those that are constants of the file, `bound`."""
    found: dict[str, None] = {}
    written: set[str] = set()
    for operator in net.operators:
        found |= dict.fromkeys(str(name) for name in operator.inputs if name is not None and name not in written)
        written |= {str(name) for name in operator.outputs}
    return [name for name in found if name not in net.constants and name not in bound]


def read_shapes(net: "Net") -> dict[str, Any]:
    """The shapes of the blobs that the net has."""
    found = {}
    blobs = {name for o in net.operators for name in (*o.inputs, *o.outputs)} | {*net.constants}
    for name, known in net.shapes.items():
        if name not in blobs: continue
        try:
            sizes, dtype = [n.__index__() for n in known[0]], str(known[1])
        except (AttributeError, IndexError, KeyError, TypeError):
            raise ValueError(f"Net.save: shapes must have (shape, name of the dtype) for each blob, got "
                             f"{described(known)} for {described(str(name))}") from None
        if dtype not in DTYPE_NAMES or not all(0 <= n < 1 << 63 for n in sizes):
            raise ValueError(f"Net.save: shapes must have (shape, name of the dtype) for each blob, got "
                             f"{described(known)} for {described(str(name))}")
        found[name] = [sizes, dtype]
    return found


def structure(text: str) -> int:
    """About how many values a JSON text has: commas and opening brackets, also those in strings."""
    return text.count(",") + text.count("[") + text.count("{")


# ---- reading ---------------------------------------------------------------------------------------------------------

def load(cls: type, path: Any) -> "Net":
    """As Net.load; `cls` is Net."""
    who = "Net.load"
    name = check_suffix(path, who)
    with Input(name, who) as file:
        metadata = safetensors.read_metadata(file)
        entries = [e.name for e in safetensors.read_entries(file)]
    reader = FileReader(f"{who}: {cut(repr(name))}", cls)
    reader.read(parsed(metadata, reader), entries)
    tensors = saving.read(name, who)
    if tensors.keys() != {*entries}:
        raise ValueError(f"{who}: {cut(repr(name))} changed while it was read; load it when nothing writes it")
    return reader.made(tensors)


def parsed(metadata: dict[str, str], reader: "FileReader") -> Any:
    """The JSON of the metadata, as Python has it."""
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{reader.at} is not a net: its metadata must have \"format\": {FORMAT!r}, got "
                         f"{described(metadata.get('format'))}; load tensors with cygrad.load")
    if metadata.get("version") != VERSION:
        raise ValueError(f"{reader.at} has the version {described(metadata.get('version'))} of the format of nets; "
                         f"this version of cygrad reads {VERSION!r}; load it with the version that wrote it")
    if metadata.keys() != {"format", "version", "net"}:
        reader.refuse(f"its metadata must have format, version and net, got {described([*metadata])}")
    text = metadata["net"]
    if len(text) > LONGEST or structure(text) > MOST:
        reader.refuse(f"its definitions have {len(text):,} characters and about {structure(text):,} values, more than "
                      f"{LONGEST:,} and {MOST:,}")
    try:
        return json.loads(text, object_pairs_hook=distinct, parse_constant=unknown)
    except (ValueError, RecursionError) as e:
        reader.refuse(f"its definitions are not JSON: {'too deeply nested' if isinstance(e, RecursionError) else e}")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of a JSON object in which no key is twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found: raise ValueError(f"an object has the key {described(key)} twice")
        found[key] = value
    return found


def unknown(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


class FileReader:
    """Reads the definitions of a net of the class `cls`. `at` is the place in the file, for messages. `read` checks
    everything, and `made` then makes the net. `nets` are those before it that can be arguments of its operators."""

    def __init__(self, at: str, cls: Any, nets: Sequence[Subnet] = ()):
        self.at = self.file = at
        self.cls, self.nets = cls, [*nets]
        self.operators: list[Operator] = []
        self.passes: list[Pass] = []
        self.gradients: dict[str, Any] | None = None
        self.numbers: dict[str, Any] = {}
        self.constants: dict[str, None] = {}        # (a set in order)

    def refuse(self, fault: str) -> NoReturn:
        raise ValueError(f"{self.at}: {fault}; {AGAIN}")

    def fields(self, found: Any, wanted: tuple[str, ...], what: str) -> dict[str, Any]:
        """An object with exactly the wanted fields."""
        if not isinstance(found, dict): self.refuse(f"{what} must be an object, got {described(found)}")
        missing = [key for key in wanted if key not in found]
        if missing: self.refuse(f"{what} has no field {described(missing[0])}")
        extra = [key for key in found if key not in wanted]
        if extra: self.refuse(f"{what} has the unknown field {described(extra[0])}")
        return found

    def kind(self, found: dict[str, Any], field: str, kinds: Any, wanted: str) -> Any:
        """A field that must be of these types."""
        value = found[field]
        if not isinstance(value, kinds): self.refuse(f"{field} must be {wanted}, got {described(value)}")
        return value

    def name(self, value: Any, field: str) -> Blob:
        """A valid name."""
        try: return check_name(value, field, "a name")
        except (TypeError, ValueError) as e: self.refuse(str(e))

    def names(self, found: dict[str, Any], field: str) -> tuple[Blob, ...]:
        """A field that is a list of names."""
        return tuple(self.name(v, field) for v in self.kind(found, field, list, "a list of names"))

    def value(self, found: Any, field: str) -> Any:
        """A value in the encoding of arguments."""
        try: return decode(found)
        except ValueError as e: self.refuse(f"{field}: {e}")

    def argument(self, found: Any, field: str) -> Any:
        """The value of an argument, which can also be a net."""
        if not isinstance(found, dict) or [*found] != ["net"]: return self.value(found, field)
        k = found["net"]
        if type(k) is not int or not 0 <= k < len(self.nets):
            self.refuse(f"{field} must be the number of a net before it, got {described(k)}")
        return self.nets[k]

    def read(self, found: Any, entries: list[str]) -> None:
        """Check the definitions; `entries` are the names of the tensors in the file."""
        if isinstance(found, dict) and NETS in found and not self.nets:
            found = {**found}
            for k, inner in enumerate(self.kind(found, NETS, list, "a list")):
                self.nets.append(self.read_net(k, inner, [e for e in entries if e.startswith(prefix(k))]))
                entries = [e for e in entries if not e.startswith(prefix(k))]
            del found[NETS]
        takes = isinstance(found, dict) and TAKES in found
        found = self.fields(found, (*NET, TAKES) if takes else NET, "the net")
        self.takes = self.names(found, TAKES) if takes else ()
        self.net_name = self.name(found["name"], "name")
        self.training = self.kind(found, "training", bool | None, "true, false or null")
        self.inputs = self.names(found, "inputs")
        self.outputs = None if found["outputs"] is None else self.names(found, "outputs")
        for k, constant in enumerate(self.kind(found, "constants", list, "a list")): self.read_constant(k, constant)
        if {*entries} != {*self.constants} - self.numbers.keys():
            wrong = sorted({*entries} ^ ({*self.constants} - self.numbers.keys()))[0]
            self.refuse(f"the tensors of the file must be the constants without a value, but {described(wrong)} is "
                        f"only one of the two")
        for k, operator in enumerate(self.kind(found, "operators", list, "a list")):
            kind = operator.get("type") if isinstance(operator, dict) else None
            self.at = f"{self.file}: operator {k}" + (f" ({shown(kind)})" if isinstance(kind, str) else "")
            self.operators.append(self.read_operator(operator))
        self.at = self.file
        self.check_blobs()
        for k, found_pass in enumerate(self.kind(found, "passes", list, "a list")): self.read_pass(k, found_pass)
        self.at = self.file
        self.check_takes()
        self.shapes = {name: self.read_shape(name, value) for name, value in
                       self.kind(found, "shapes", dict, "an object").items()}

    def read_net(self, k: int, found: Any, entries: list[str]) -> Subnet:
        """Check a net that is an argument. Its constants that are tensors are None, until made()."""
        reader = FileReader(f"{self.file}: net {k}", self.cls, self.nets)
        reader.read(reader.fields(found, (*NET, TAKES), "it"), [e.removeprefix(prefix(k)) for e in entries])
        if reader.outputs is None: reader.refuse("outputs must be a list of names")
        net = reader.made({})
        try: refuse(net, "it")
        except ValueError as e: reader.refuse(str(e))
        return Subnet(net)

    def read_constant(self, k: int, found: Any) -> None:
        """Check a constant: a number, or the name of a tensor."""
        self.at = f"{self.file}: constant {k}"
        number = isinstance(found, dict) and "value" in found
        name = self.name(self.fields(found, ("name", "value") if number else ("name",), "it")["name"], "name")
        self.at = self.file
        if name in self.constants: self.refuse(f"the constant {described(str(name))} is there twice")
        if number:
            value = self.value(found["value"], f"the constant {described(str(name))}")
            if not isinstance(value, bool | int | float):
                self.refuse(f"the constant {described(str(name))} must be a number, got {described(value)}")
            self.numbers[name] = value
        self.constants[name] = None

    def read_operator(self, found: Any) -> Operator:
        """Check an operator. An Operator is plain data, so it is made here."""
        found = self.fields(found, OPERATOR, "it")
        kind = self.name(found["type"], "type")
        if kind == PYTHON: self.refuse("type \"python\" needs functions, which no file holds")
        given, outputs = self.kind(found, "inputs", list, "a list of names"), self.names(found, "outputs")
        inputs = tuple(None if v is None else self.name(v, "inputs") for v in given)
        if len({*outputs}) < len(outputs): self.refuse("outputs must have different names")
        arguments = {}
        for key, value in self.kind(found, "arguments", dict, "an object").items():
            if not key.isidentifier(): self.refuse(f"arguments must have identifiers as keys, got {described(key)}")
            arguments[key] = self.argument(value, f"arguments, {shown(key)}")
        label = self.kind(found, "name", str, "a string")
        if label: self.name(label, "name")
        is_gradient = self.kind(found, "is_gradient", bool, "true or false")
        of = self.kind(found, "of", int | None, "the number of an operator before it, or null")
        if of is not None and (isinstance(of, bool) or not 0 <= of < len(self.operators)):
            self.refuse(f"of must be the number of an operator before it, or null, got {described(of)}")
        try:
            made = Operator(kind, inputs, outputs, arguments, label, is_gradient,
                            of=None if of is None else self.operators[of])
            if kind in NETS_OF: check_operator(made, "it")
            return made
        except (TypeError, ValueError) as e: self.refuse(str(e))

    def check_blobs(self) -> None:
        """Check that every operator reads what exists, and that the inputs and outputs are those of the operators."""
        constants, inputs = {*self.constants}, {*self.inputs}
        if len(inputs) < len(self.inputs): self.refuse("inputs must have different names")
        known: set[str] = constants | inputs
        first: dict[str, None] = {}
        for k, operator in enumerate(self.operators):
            self.at = f"{self.file}: operator {k} ({shown(operator.type)})"
            for name in operator.inputs:
                if name is None: continue
                if name not in known:
                    self.refuse(f"inputs: {described(str(name))} is not an input of the net, not a constant, and no "
                                f"operator before writes it")
                first.setdefault(name)
            for name in operator.outputs:
                if name in constants: self.refuse(f"outputs: {described(str(name))} is a constant")
                if name in inputs and name not in first:
                    self.refuse(f"outputs: {described(str(name))} is an input of the net, which must be read before it "
                                f"is written")
                known.add(name)
        self.at = self.file
        if [name for name in first if name in inputs] != [*self.inputs]:
            self.refuse("inputs must be the blobs that are read before they are written, in order, without the "
                        "constants")
        for output in self.outputs or ():
            if output not in known: self.refuse(f"outputs: no operator has {described(str(output))}")
        if self.outputs is not None and len({*self.outputs}) < len(self.outputs):
            self.refuse("outputs must have different names")
        self.known = known

    def check_takes(self) -> None:
        """Check the inputs in their order: all of the net, and others that no operator uses."""
        if len({*self.takes}) < len(self.takes): self.refuse(f"{TAKES} must have different names")
        wrong = [name for name in self.takes if name in self.known and name not in self.inputs]
        if wrong: self.refuse(f"{TAKES}: {described(str(wrong[0]))} is no input of the net")
        if self.takes and not {*self.inputs} <= {*self.takes}: self.refuse(f"{TAKES} must have all inputs of the net")

    def read_pass(self, k: int, found: Any) -> None:
        """Check a backward pass. If the same pass is made again from its heads, it runs as one; else, as after an edit,
        its operators run one by one."""
        self.at = f"{self.file}: pass {k}"
        found = self.fields(found, PASS, "it")
        first, skip = self.kind(found, "first", int, "an int"), self.kind(found, "skip", int, "an int")
        ys = {self.name(y, "ys"): None if head is None else self.name(head, "ys")
              for y, head in self.kind(found, "ys", dict, "an object").items()}
        if isinstance(first, bool) or isinstance(skip, bool) or not 0 <= skip <= first <= len(self.operators):
            self.refuse(f"first and skip must be numbers of operators, skip the lower one, got {described(first)} and "
                        f"{described(skip)}")
        before = self.operators[:first]
        frozen = self.names(found, "frozen")
        added = [*takewhile(lambda o: o.is_gradient, self.operators[first:])]
        for early in (None, early_parts(before, added), ()):    # (a capture knows sizes; version 0.1 had no such order)
            try: made = backward_pass(before, ys, skip, self.constants, {*self.constants}, "Net.load", frozen or (),
                                      early=early)
            except (TypeError, ValueError, RuntimeError) as e: self.refuse(f"its operators have no gradient: {e}")
            n = len(made.operators)
            if tuple(self.operators[first:first + n]) == made.operators: break
        else: return
        replaced = {id(old): new for old, new in zip(self.operators[first:first + n], made.operators, strict=True)}
        self.operators[first:first + n] = made.operators
        for i in range(first + n, len(self.operators)):
            of = replaced.get(id(self.operators[i].of))
            if of is not None: self.operators[i] = self.operators[i].replace(of=of)
        self.passes.append(made)
        if self.kind(found, "own", bool, "true or false"): self.gradients = made.gradients

    def read_shape(self, name: str, found: Any) -> tuple[tuple[int, ...], str]:
        """Check the shape and dtype of a blob."""
        if name not in self.known: self.refuse(f"shapes: the net has no blob {described(name)}")
        match found:
            case [[*shape], str(dtype)] if dtype in DTYPE_NAMES and all(
                    type(n) is int and 0 <= n < 1 << 63 for n in shape):
                return tuple(shape), dtype
        self.refuse(f"shapes: {described(name)} must have [shape, dtype], got {described(found)}")

    def made(self, tensors: dict[str, Tensor]) -> "Net":
        """The net, with the tensors of the file as constants."""
        net: Net = self.cls(self.net_name)
        for k, inner in enumerate(self.nets if tensors else ()):
            own = state_of(inner.net).constants
            own |= {key: tensors[prefix(k) + key] for key, value in own.items() if value is None}
            inner.made.clear()                      # (made without these)
        state = state_of(net)
        state.define(self.operators, {name: self.numbers.get(name, tensors.get(name)) for name in self.constants})
        state.passes, state.gradients = tuple(self.passes), self.gradients
        for p in self.passes: state.given |= gradient_names(p.gradients)
        if self.takes: net.inputs = self.takes
        net.outputs, net.training, net.shapes = self.outputs, self.training, self.shapes
        return net


def shown(text: str) -> str:
    """A type or a keyword of a file in a message."""
    return shown_name(text) if re.fullmatch(r"[\w.]{1,60}", text) else described(text)
