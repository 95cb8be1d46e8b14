"""memory.profile.advice: changes to a program that would lower a peak. Each rule examines what was live at the peak. If
it applies, it yields the change and the number of bytes by which this peak would be lower."""

import textwrap
from typing import NamedTuple

from cygrad.core.sizes import words
from cygrad.memory.log import PHASES
from cygrad.memory.rows import BEFORE, pieces

WIDEST = 120                # columns of printed advice
LEAST = 100                 # advice that saves less than 1/LEAST of the peak is omitted
FUSED = ("relu", "tanh", "sigmoid")                 # activations that linear can compute itself
LOGARITHMS = {"softmax": "log_softmax, or cross_entropy on the logits,", "sigmoid": "bce_with_logits on the logits"}


class Advice(NamedTuple):
    """A change that would lower a peak, and by how many bytes."""

    bytes: int
    text: str

    def __str__(self):
        return textwrap.fill(f"{self.bytes:,} bytes less: {self.text}", WIDEST, subsequent_indent="    ")


def advice(log):
    """The advice for the peak of a log, the most bytes first; advice that changes the training comes last."""
    found = list(pieces(log))
    phase, begun = next(((PHASES[phase], begun) for phase, first, begun, last, _ in log.phases()
                         if first < log.peak_at <= last), ("", 0))
    given = [(rule is states, -a.bytes, a.text) for rule in RULES for a in rule(log, found, phase, begun)]
    return [Advice(-less, text) for _, less, text in sorted(given) if -less * LEAST >= max(log.peak, 1)]


def total(found):
    return sum(piece.bytes for piece in found)


def by_line(found):
    """The pieces of each operation and line, the most bytes first."""
    groups = {}
    for piece in found: groups.setdefault((piece.operation, piece.line), []).append(piece)
    return sorted(groups.items(), key=lambda item: -total(item[1]))


def rows_at_a_time(log, found, phase, begun):
    """Saved tensors grow with the number of rows of a step."""
    saved = [p for p in found if p.category == "saved" and p.operation != BEFORE]
    if not saved: return
    (operation, line), largest = by_line(saved)[0]
    why = f" because {largest[0].reasons[0]}" if largest[0].reasons else ""
    yield Advice(total(saved) // 2, f"process half of the rows at a time: {words(total(saved))} are saved for "
                 f"backward, the most, {words(total(largest))}, by {operation} at {line}{why}; with attach_grad("
                 f"\"add\") or requires_grad_() the gradients of the two halves add up: multiply each half's loss by "
                 f"0.5 if it is a mean of the rows, call update() once after both, and zero_grad() before the next "
                 f"step")


def old_gradients(log, found, phase, begun):
    """Gradients of the previous step, which the next backward overwrites or adds to."""
    old = total(p for p in found if p.category == "gradients" and p.operation == BEFORE)
    if phase not in ("forward", "backward"): return
    yield Advice(old, f"call the solver's zero_grad() before the forward pass, or set x.grad = None for each parameter "
                 f"x: {words(old)} of gradients of the previous step are live at the peak, and zeros take no memory; "
                 f"if the peak is late in backward, part of it is allocated again")


def named(log, found, phase, begun):
    """Results of the forward pass that backward does not need but that a name still refers to."""
    if phase != "backward": return
    held = [p for p in found if p.category == "other" and 0 <= p.time < begun
            and p.operation not in ("tensor", "head gradient")]
    for (operation, line), those in by_line(held):
        yield Advice(total(those), f"release the result of {operation} at {line} before backward runs: no operation "
                     f"needs its {words(total(those))} any more, but a name refers to it (`del` the name, or return "
                     f"from the function that has it)")


def in_double(log, found, phase, begun):
    """float64 takes twice the bytes of float32."""
    double = [p for p in found if p.shape and p.shape[1] == "float64"]
    if not double: return
    (operation, line), largest = by_line(double)[0]
    yield Advice(total(double) // 2, f"compute in float32: {words(total(double))} are float64, the most of it, "
                 f"{words(total(largest))}, by {operation} at {line}; cast data with astype(\"float32\")")


def fused(log, found, phase, begun):
    """A linear whose result is live only because an activation function reads it."""
    last = log.made_last()
    if last not in FUSED or phase != "forward": return
    born = max((p.time for p in found if p.operation == last), default=-1)
    read = [p for p in found if p.operation == "linear" and p.category == "other" and p.time >= 0]
    if not read: return
    read = max(read, key=lambda p: p.time)
    if read.time > born: return
    yield Advice(read.bytes, f"write linear(x, w, b, activation=\"{last}\") at {read.line}: the result of linear, "
                 f"{words(read.bytes)}, is live at the peak next to that of {last}; one operation does not make it")


def logarithms(log, found, phase, begun):
    """The log of softmax or sigmoid."""
    for operation, instead in LOGARITHMS.items():
        read = [p for p in found if p.operation == operation and "log needs its input" in p.reasons]
        if read:
            yield Advice(total(read), f"use {instead} instead of log({operation}(x)) at {read[0].line}: it does not "
                         f"save the {words(total(read))} of {operation}, and does not overflow")


def states(log, found, phase, begun):
    """The states that a solver stores for each parameter."""
    kept = total(p for p in found if p.category == "optimizer")
    yield Advice(kept, f"consider optim.Sgd, if it trains your model as well: the solver stores {words(kept)} of "
                 f"states, and Sgd stores none")


RULES = (rows_at_a_time, old_gradients, named, in_double, fused, logarithms, states)
