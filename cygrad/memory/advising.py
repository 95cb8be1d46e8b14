"""memory.profile.advice: changes to a program that would lower a peak. Each rule examines what was live at the peak. If
it applies, it yields the change and the number of bytes by which this peak would be lower."""

import math
import re
import textwrap
from typing import NamedTuple

from cygrad.core.sizes import words
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.memory.log import PHASES
from cygrad.memory.reports import WIDEST
from cygrad.memory.rows import BEFORE, pieces
from cygrad.memory.sites import operation as operation_of

CHUNKS = 16                 # into which the advised linear_cross_entropy divides the rows
REPEATED = re.compile(r"\.\d+(?=\.|$)")            # the number of a layer: ".3" in "GPT.blocks.3.attention"
GRADIENTS = CATEGORY_NAMES.index("gradients")
MOST_POINTS = 1 << 16       # the moments at which a peak without some buffers is looked for
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
    if phase not in ("forward", "backward") or not old: return
    later = [sum(log.state(last)[0]) + sum(entry[1] for entry in log.state(last)[1])
             for phase, _, _, last, _ in log.phases() if PHASES[phase] == "backward" and last > log.dropped]
    yield Advice(min(old, log.peak - max(later, default=0)),
                 f"call the solver's zero_grad() before the forward pass, or set x.grad = None for each parameter x: "
                 f"{words(old)} of gradients of the previous step are live at the peak, and zeros take no memory until "
                 f"backward writes them")


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


def whole_logits(log, found, phase, begun):
    """The logits of a linear that cross_entropy reads, or their gradient, which overwrites them."""
    read = before_cross_entropy(log)
    whole = [p for p in found if p.time in read and p.operation == "linear"]
    if not whole: return
    *sizes, classes = whole[0].shape[0]
    rows = math.prod(sizes)
    chunk = -(-rows // CHUNKS)
    yield Advice(total(whole) - whole[0].bytes * chunk // max(rows, 1),
                 f"write linear_cross_entropy(x, w, labels, chunk={chunk}) instead of linear and cross_entropy at "
                 f"{whole[0].line}: the logits of {rows:,} rows and {classes:,} classes take {words(total(whole))}; it "
                 f"has those of {chunk:,} rows at a time, and computes them again in backward")


def before_cross_entropy(log):
    """When each result of linear was allocated that was the last one before an allocation by cross_entropy."""
    if not any(operation_of(site) == "cross_entropy" for site in log.sites): return set()
    read, last = set(), None
    for begun, site in sorted((begun, site) for _, _, site, _, begun, _ in log.lives()):
        made = log.name(site)[0]
        if made == "cross_entropy": read.add(last)
        else: last = begun if made == "linear" else None
    return read


def kept_blocks(log, found, phase, begun):
    """What repeated layers save between their input and their output."""
    if phase not in ("forward", "backward"): return
    groups = {}                                     # "GPT.blocks" -> {"GPT.blocks.3": [piece]}
    for p in found:
        if p.category != "saved" or p.operation.endswith("(backward)"): continue
        for number in REPEATED.finditer(p.layer):
            groups.setdefault(p.layer[:number.start()], {}).setdefault(p.layer[:number.end()], []).append(p)
    best = max(((inner_bytes(blocks), name, blocks) for name, blocks in groups.items()), default=None,
               key=lambda group: group[0])
    if best is None: return
    less, name, blocks = best
    if not log.dropped: less = log.peak - peak_without(log, between_passes(log, name), *step_of_peak(log))
    kept = total(p for pieces in blocks.values() for p in pieces)
    yield Advice(less, f"call checkpoint_() on each of the {len(blocks)} layers of {name}, or write cygrad.checkpoint("
                 f"layer, x): they save {words(kept)} for backward, of which only their inputs would stay until "
                 f"backward computes one layer at a time again; the bits are the same, and a step takes up to a third "
                 f"more time")


def inner_bytes(blocks):
    """What checkpoints of blocks save: all but the last piece of each, which is the input of the next one, and the
    largest block, which backward computes again."""
    inner = [total(pieces) - max(pieces, key=lambda p: p.time).bytes for pieces in blocks.values()]
    return sum(inner) - max(inner)


def between_passes(log, name):
    """[(bytes, ticks from, to)] of what the numbered layers of `name` keep from the end of their forward to the start
    of their backward, except for the result of each, in the step of the peak."""
    start, end = step_of_peak(log)
    turn = min((begun for phase, _, begun, _, _ in log.phases() if PHASES[phase] == "backward" and start < begun < end),
               default=end)
    made = {}                                       # number of a layer -> [(ticks, whether in backward, bytes, to)]
    for _, nbytes, site, _, begun, ended in log.lives():
        number = re.match(re.escape(name) + r"\.(\d+)(?=\.|$)", log.layer(site))
        if number is None or not start <= begun < end: continue
        entry = begun, operation_of(log.sites[site]).endswith("(backward)"), nbytes, ended
        made.setdefault(number[1], []).append(entry)
    gone = []
    for entries in made.values():
        kept = sorted((begun, nbytes, end if ended is None else ended) for begun, backward, nbytes, ended in entries
                      if not backward and (ended is None or ended >= turn))
        back = min([begun for begun, backward, _, _ in entries if backward] + [ended for _, _, ended in kept],
                   default=end)
        last = max((begun for begun, backward, _, _ in entries if not backward), default=end)
        gone += [(nbytes, last, back) for _, nbytes, _ in kept[:-1]]
    return gone


def step_of_peak(log):
    """(ticks from, to) of the step of the peak, from the start of its forward to that of the next step."""
    start, before = 0, ""
    for phase, first, begun, _, _ in log.phases():
        if PHASES[phase] == "forward" != before:
            if first >= log.peak_at: return start, begun
            start = begun
        before = PHASES[phase]
    return start, log.duration()


def stored_gradients(log, found, phase, begun):
    """Gradients that are complete and wait for the solver's update."""
    _, _, backwards, updates = log.passes()
    if log.dropped or not updates or backwards > updates: return        # (no solver, or gradients are added up)
    _, start, ticks, _, _ = log.phases()[0]
    old, kept = log.before[GRADIENTS], log.state(start)[0][GRADIENTS]   # (zero_grad() may free them first)
    stored = [(old - kept, -1, ticks), (kept, -1, None), *staying(log)]
    waiting = kept + sum(nbytes for nbytes, _, _ in stored[2:])
    yield Advice(log.peak - peak_without(log, stored),
                 f"call the solver's fuse_into_backward(): {words(waiting)} of gradients wait for update(); "
                 f"fused, each parameter is updated within backward as soon as its gradient is complete, and the "
                 f"gradient is freed (not with clipping or loss scaling, which need all of them at once)")


def staying(log):
    """[(bytes, ticks from, to)] of the gradients that outlive the backward pass that allocated them. They are not
    needed once the next one is made, if each is used at once."""
    ends = [0]                                      # of passes; updates within a pass do not end it
    for phase, _, _, _, ended in log.phases():
        if PHASES[phase] == "backward": ends[-1] = ended
        elif PHASES[phase] == "forward" and ends[-1]: ends.append(0)
    stored = sorted((begun, nbytes, ended) for _, nbytes, _, category, begun, ended in log.lives()
                    if category == GRADIENTS
                    and (ended is None or any(begun <= end < ended for end in ends)))
    following = [begun for begun, _, _ in stored[1:]] + [log.duration()]
    return [(nbytes, after, ended) for (_, nbytes, ended), after in zip(stored, following, strict=False)]


def peak_without(log, gone, start=0, end=math.inf):
    """The peak between two times if buffers, (bytes, ticks from, to), were not there."""
    changes = [(begun, -nbytes) for nbytes, begun, _ in gone]
    changes += [(ended, nbytes) for nbytes, _, ended in gone if ended is not None]
    changes.sort()
    less = k = peak = 0
    for _, ticks, totals in log.course(MOST_POINTS):
        while k < len(changes) and changes[k][0] <= ticks:
            less += changes[k][1]
            k += 1
        if start <= ticks < end: peak = max(peak, sum(totals) + less)
    return peak


def states(log, found, phase, begun):
    """The states that a solver stores for each parameter."""
    kept = total(p for p in found if p.category == "optimizer")
    yield Advice(kept, f"consider optim.Sgd, if it trains your model as well: the solver stores {words(kept)} of "
                 f"states, and Sgd stores none")


RULES = (rows_at_a_time, old_gradients, named, in_double, fused, logarithms, whole_logits, kept_blocks,
         stored_gradients, states)
