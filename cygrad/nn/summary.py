"""Module.summary: what each layer of a model makes, keeps and computes for an example."""

from __future__ import annotations

from typing import Any, NamedTuple

from cygrad.autograd import predict_mode, record, train_mode
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.core.thread_state import set_recording
from cygrad.memory import profile
from cygrad.nn.call import running_layer
from cygrad.nn.waiting import is_readable

SAVED = CATEGORY_NAMES.index("saved")
HEADINGS = ("layer", "result", "parameters", "bytes kept", "FLOPs")


class SummaryRow(NamedTuple):
    """One module. `parameters`, `kept_bytes` and `flops` include the modules below it; a shared parameter is counted in
    the first module that has it, and in those above that one."""

    path: str           # such as "encoder.0"; "" for the model
    layer: str          # the name of the class
    depth: int          # the number of calls that it is nested in
    shape: Any          # its first result has it: a tuple, a list of them, None, or the name of another class
    calls: int
    parameters: int
    kept_bytes: int     # that its nodes keep for backward after the forward pass, in all calls
    flops: int          # in all calls


class Summary:
    """The result of Module.summary. `rows` are the modules in the order of their first calls, the model first;
    `parameters`, `parameter_bytes`, `buffer_bytes`, `kept_bytes` and `flops` are those of the model. It prints as a
    table."""

    rows: list[SummaryRow]
    parameters: int
    parameter_bytes: int
    buffer_bytes: int
    kept_bytes: int
    flops: int

    def __init__(self, module, rows):
        self.rows = rows
        parameters = list(module.parameters())
        self.parameters = sum(x.size for x in parameters)
        self.parameter_bytes = sum(x.nbytes for x in parameters)
        self.buffer_bytes = sum(x.nbytes for x in module.buffers())
        self.kept_bytes, self.flops = rows[0].kept_bytes, rows[0].flops

    def __repr__(self):
        cells, above = [HEADINGS], []               # above: the paths of the calls that a row is nested in
        for r in self.rows:
            above[r.depth:] = [r.path]
            name = f"{'  ' * r.depth}{below(r.path, above[r.depth - 1])}: {r.layer}" if r.path else r.layer
            name += f" ({r.calls} calls)" * (r.calls > 1)
            cells.append((name, in_words(r.shape), *(f"{n:,}" if n else "-" for n in r[5:])))
        widths = [max(len(row[k]) for row in cells) for k in range(5)]
        lines = ["  ".join([row[0].ljust(widths[0]), row[1].ljust(widths[1]),
                            *(row[k].rjust(widths[k]) for k in (2, 3, 4))]) for row in cells]
        lines.append(f"{self.parameters:,} parameters ({self.parameter_bytes:,} bytes), buffers of "
                     f"{self.buffer_bytes:,} bytes; {self.kept_bytes:,} bytes kept for backward; {self.flops:,} FLOPs")
        return "\n".join(lines)


def below(path, other):
    """A path from another one on, such as "blocks.0" for "encoder.blocks.0" and "encoder"."""
    return path[len(other) + 1:] if path.startswith(other + ".") else path


def in_words(shape):
    """What shape_of() returns, as text: names of classes without quotes."""
    return f"[{', '.join(map(in_words, shape))}]" if isinstance(shape, list) else str(shape)


def shape_of(y):
    """The shape of a result, or the shapes of several; None for None, and the class of anything else."""
    if y is None: return None
    if isinstance(y, Tensor): return y.shape
    if isinstance(y, (list, tuple)): return [shape_of(v) for v in y]
    return type(y).__name__


class CallWatch:
    """Notes the calls: its hooks run before and after each module."""

    def __init__(self, module):
        self.paths = {id(m): path for path, m in module.named_modules()}
        self.modules, self.depths, self.shapes, self.calls, self.flops = {}, {}, {}, {}, {}    # by the path that runs
        self.open = []                              # the FLOPs so far of the calls that run

    def before(self, module, args):
        path = running_layer()
        self.modules.setdefault(path, module)
        self.depths.setdefault(path, len(self.open))
        self.open.append(0)

    def after(self, module, args, kwargs, y):
        path = running_layer()
        flops = self.open.pop() + module._flops(*args, y=y, **kwargs)
        if self.open: self.open[-1] += flops
        self.shapes.setdefault(path, shape_of(y))
        self.calls[path] = self.calls.get(path, 0) + 1
        self.flops[path] = self.flops.get(path, 0) + flops

    def rows(self, kept):
        """The rows, for the kept bytes of each path."""
        owner = {}                                  # id of a parameter -> the first module that has it as its own
        for m in self.modules.values():
            for part in m.modules():
                for name in part._parameters: owner.setdefault(id(vars(part)[name]), part)
        for path, m in self.modules.items():
            sizes = {id(x): x.size for part in m.modules() for x in part.parameters(recurse=False)
                     if owner[id(x)] is part}
            own = sum(n for p, n in kept.items() if p == path or p.startswith(path + "."))
            yield SummaryRow(self.paths[id(m)], type(m).__name__, self.depths[path], self.shapes[path],
                             self.calls[path], sum(sizes.values()), own, self.flops[path])


def kept_bytes(log):
    """The bytes of the buffers that nodes keep now, by the path of the layer; each counts for the first node."""
    _, live, kept = log.state(len(log))
    sizes = {buffer: nbytes for buffer, nbytes, _, category, _ in live if category == SAVED}
    found = {}
    for buffer, sites in kept.items():
        path = log.layer(sites[0])
        found[path] = found.get(path, 0) + sizes.get(buffer, 0)
    return found


def summarize(module: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Summary:
    """See Module.summary."""
    watch = CallWatch(module)
    modules = list(module.modules())
    buffers = [(x, x.detach().copy()) for m in modules for x in (m.__dict__[name] for name in m._buffers)
               if is_readable(x)]
    generators = {id(g): g for m in modules for g in vars(m).values() if isinstance(g, Generator)}
    states = [(g, g.state) for g in (default_generator, *generators.values())]
    handles = []
    try:
        for m in modules:
            handles.append(m.register_forward_pre_hook(watch.before, prepend=True))
            handles.append(m.register_forward_hook(watch.after, with_kwargs=True))
        with profile() as p, record(), (predict_mode if module._mode is False else train_mode)():
            inputs = tuple(x.detach().copy() if isinstance(x, Tensor) else x for x in inputs)   # which the log then has
            y = module(*inputs, **kwargs)           # the result holds the graph until the end of the scope
            kept = kept_bytes(p._read())    # type: ignore[attr-defined]  # the events, which no method gives
    finally:
        for handle in handles: handle.remove()
        for g, state in states: g.state = state
        recording = set_recording(False)
        for x, before in buffers: x.detach().copy_(before)
        set_recording(recording)
    del y
    return Summary(module, list(watch.rows(kept)))
