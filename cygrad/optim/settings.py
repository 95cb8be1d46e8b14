"""Checks of the arguments of schedules and updaters. `owner` is the class that an error names."""

import inspect
import itertools
import math
import sys
from numbers import Integral, Real

from cygrad.core.errors import cut, described


def shown(value, entries, end=""):
    """The repr of a solver, schedule or updater. Of an object in `entries`, pass the class, whose name is shown."""
    def text(entry):
        if isinstance(entry, list): return f"[{', '.join(map(text, entry))}]"
        return entry.__name__ if isinstance(entry, type) else repr(entry)

    inner = ", ".join(f"{key}={cut(text(entry))}" for key, entry in entries.items())
    return f"<{type(value).__name__}{': ' * bool(inner or end)}{inner}{', ' * bool(inner and end)}{end}>"


def number(owner, name, value, low=0, high=math.inf, above=None):
    """`value` as a float from `low`, or greater than `above`, to `high`. Raises TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: {name} must be a number, got {described(value)}")
    if not low <= value <= min(high, sys.float_info.max) or (above is not None and value <= above):
        least = f"at least {low:g}" if above is None else f"greater than {above:g}"
        most = f"at most {high:g}" if high < math.inf else "finite"
        raise ValueError(f"{owner}: {name} must be {least} and {most}, got {described(value)}")
    return float(value)


def power(x, n):
    """x^n, and inf where Python raises OverflowError."""
    try: return x**n
    except OverflowError: return math.inf


def rate_at(owner, step, value):
    """A learning rate at a step, as a float. Raises ValueError if it is negative, infinite or NaN."""
    return number(owner, f"the rate at step {step}", value)


def instance(owner, name, value):
    """Raise TypeError for a class in place of an instance."""
    if isinstance(value, type):
        raise TypeError(f"{owner}: {name} must be an instance, got the class {value.__name__}; create one, "
                        f"{value.__name__}(...)")


def runs(owner, name, f, advice=""):
    """Raise TypeError for a generator function or coroutine function: a call of it would run nothing."""
    for kind, is_kind in (("generator", inspect.isgeneratorfunction), ("coroutine", inspect.iscoroutinefunction),
                          ("generator", inspect.isasyncgenfunction)):
        if is_kind(f):
            raise TypeError(f"{owner}: {name} must be a function that runs when it is called, got a {kind} function"
                            f"{advice}")


def count(owner, name, value, low=1):
    """`value` as an int of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{owner}: {name} must be an integer, got {described(value)}")
    if value < low: raise ValueError(f"{owner}: {name} must be at least {low}, got {value}")
    return int(value)


def refuse_used(owner, name, given):
    """Raise ValueError if `given`, which had no elements, is an iterator: most likely, it was read before."""
    if hasattr(given, "__next__"):
        raise ValueError(f"{owner}: {name} is an iterator without elements, and an iterator can be read once; pass a "
                         f"list, such as [*model.parameters()]")


def increasing(owner, name, values, strictly):
    """A list of steps, sorted. If they must increase strictly, the first is at least 1."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{owner}: {name} must be a list of integers, got {described(values)}")
    values = [count(owner, f"{name}[{k}]", v, int(strictly)) for k, v in enumerate(values)]
    if strictly and any(a >= b for a, b in itertools.pairwise(values)):
        raise ValueError(f"{owner}: {name} must increase, got {described(values)}")
    return sorted(values)


def choice(owner, name, value, choices):
    if value not in choices:
        raise ValueError(f"{owner}: {name} must be {' or '.join(map(repr, choices))}, got {described(value)}")
    return value


def per_group(owner, name, value, n, read):
    """A setting for each of `n` groups: read(name, value), from one value or a list of n."""
    if not isinstance(value, (list, tuple)): return [read(name, value)] * n
    if len(value) != n:
        raise ValueError(f"{owner}: {name} must be one value or a list with one for each group of the solver "
                         f"({n}), got {len(value)}")
    return [read(f"{name}[{k}]", v) for k, v in enumerate(value)]
