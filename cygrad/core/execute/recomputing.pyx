"""Recomputation: a pass over the steps of a program, after which its arena has at most a given number of bytes. What
does not fit is dropped and made again, by the step that computed it, before its next use.

Runs are simulated (simulating.pyx) with several rules, and with less memory than there is, since a greedy choice can be
worse where there is more. The cheapest run that can be placed is taken. Runs that repeat more than MOST_WORK times the
work of the program do not count, so that a refusal does not take minutes."""

from cygrad.core.execute.placing cimport ALIGNMENT
from cygrad.core.execute.simulating cimport N_B, N_RULES, Item
from cygrad.core.graph.steps cimport Step

from heapq import heapify, heappop, heappush

from cygrad.core.errors import MemoryLimitError

cdef enum:
    RUNGS = 8               # limits below the one that was asked for,
    BEST = 4                # with which these rules are tried too
    ATTEMPTS = 32           # to place the buffers of a run, with less and less memory
    SHOWN = 3               # buffers that an error lists

cdef double RATIO = 0.98    # of a limit to the next larger one
cdef double SLACK = 1.25    # runs with more work than so many times the least are not tried


cdef int search(Simulation x, size_t limit, object rules, list found) except -1:
    """Append (work, bytes below `whole`, rule, peak) for each of the rules with which `limit` bytes are enough."""
    cdef int k
    for k in rules:
        if not x.run(limit, k, False): continue
        found.append((x.work, x.whole - limit, k, x.peak))
        x.most = min(x.most, SLACK * x.work)
    return 0


cdef bint attempt(Simulation x, list found, size_t limit) except -1:
    """Change the schedule to the cheapest of the runs in the heap `found` whose arena has at most `limit` bytes. The
    arena of a run can be larger than what its buffers need at one time; the same rule gets less then."""
    cdef size_t size, given
    cdef int k, tried = 0
    cdef dict sizes = {}                            # of arenas, by the work and the peak of the runs that did not fit
    x.most, x.target = x.bearable, limit
    while found and tried < ATTEMPTS:
        work, less, k, peak = heappop(found)
        given = x.whole - <size_t>less
        if (work, peak) not in sizes:
            tried += 1
            size = x.apply(given, k)
            if size <= limit: return True
            x.undo()
            sizes[work, peak] = size
        given = <size_t>(min(<double>given, <double>peak) * limit / <double>sizes[work, peak] * 0.999)
        if x.run(given, k, False): heappush(found, (x.work, x.whole - given, k, x.peak))
    return False


cdef size_t least(Simulation x) except 0:
    """Set `limit` and `rule` to those with which a run needs the least memory. Returns a limit that is too low."""
    cdef size_t low = 1, high = x.whole, middle, step = max(<size_t>ALIGNMENT, x.whole >> 14)
    cdef int k, best = 0
    x.most = x.bearable
    while high - low > step:
        middle = low + (high - low) // 2
        for k in range(0, N_RULES, N_B):
            if x.run(middle, k, False):
                high, best = middle, k
                break
        else: low = middle
    x.limit, x.rule = high, best
    return low


cdef int refuse(Simulation x, size_t limit, size_t missing, size_t enough) except -1:
    """Raise MemoryLimitError, because `limit` bytes are too few, unless they are just enough. `missing`: bytes that
    other memory has too many. `enough`: bytes that are enough with chains."""
    cdef Item* item
    cdef Step step
    cdef size_t size, low = least(x)
    cdef int k, rule = x.rule
    size = x.apply(x.limit, rule)
    if size <= limit and not missing: return 0
    x.undo()
    size = min(size, enough)
    x.run(low, rule, False)
    at = min(x.now, x.n_steps - 1)
    step = <Step>x.schedule.steps[at]
    held = []
    for k in range(x.n_items):
        item = &x.items[k]
        if item.number >= 0 and item.place < 0: held.append((item.nbytes, -x.uses[item.first]))
    held.sort(reverse=True)
    names = [f"{nbytes:,} of {(<Step>x.schedule.steps[-first]).name}" for nbytes, first in held[:SHOWN]]
    place = f"at step {at + 1} of {x.n_steps}, {step.name}" if x.now < x.n_steps else "at the end"
    raise MemoryLimitError(
        f"the budget leaves {limit:,} bytes for the intermediate results of a run, which needs {size:,}, because "
        f"{place} they must be there at once: {', '.join(names) or 'its own memory'}; raise the budget by "
        f"{size - limit + missing:,} bytes", size, limit, 0, step.name)


cdef list runs(Simulation x, size_t limit):
    """A heap of runs in `limit` bytes and less: (work, bytes below `whole`, rule, peak), the cheapest first."""
    cdef size_t rung = x.whole
    cdef list found = []
    x.most = x.bearable
    while rung > limit: rung = <size_t>(rung * RATIO)       # (the same ones for all limits)
    search(x, limit, range(N_RULES), found)
    best = [rule for _, _, rule, _ in sorted(found)[:BEST]] or range(N_RULES)
    for _ in range(RUNGS):
        search(x, rung, best, found)
        rung = <size_t>(rung * RATIO)
    heapify(found)
    return found


cdef Simulation recompute(ProgramSchedule s, size_t limit, size_t missing, size_t enough):
    """Change a schedule that was placed so that its arena has at most `limit` bytes. Raises MemoryLimitError if that
    is impossible. `missing`: bytes that other memory has too many; then it is. `enough`: bytes that are enough
    with chains."""
    cdef Simulation x = Simulation.__new__(Simulation)
    cdef list found
    x.read_schedule(s)
    x.whole = s.size
    found = runs(x, limit)
    if missing or not attempt(x, found, limit): refuse(x, limit, missing, enough)
    return x
