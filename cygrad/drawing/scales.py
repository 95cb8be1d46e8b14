"""Units, round ticks and colours, shared by all pictures."""

BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
SECONDS = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))
# the categories from the bottom up: memory that persists through a step, then memory that the step allocates
COLORS = {"parameters": "#30638e", "optimizer": "#7ba7cc", "gradients": "#d1495b", "saved": "#edae49",
          "workspace": "#66a182", "other": "#b9b9b9"}
DARK = ("parameters", "gradients")                  # text on these is white
PHASE_COLORS = {"forward": "#dcdcdc", "backward": "#9c9c9c", "update": "#2b2b2b"}     # greys, unlike the categories


def byte_unit(maximum):
    """The largest unit of which `maximum` has at least two, as (bytes, name)."""
    return next((size, name) for size, name in BYTES if maximum >= 2 * size or size == 1)


def seconds_unit(maximum):
    """The same for time, as (seconds, name)."""
    return next((size, name) for size, name in SECONDS if maximum >= 2 * size or name == "us")


def ticks(maximum, whole=False, at_most=6):
    """Round numbers from 0 to `maximum`: multiples of 1, 2 or 5 times a power of ten (`whole`: of at least 1)."""
    step, k = 1.0, 0
    while not whole and 0 < maximum / step < at_most / 3: step /= 10
    while maximum / step > at_most:
        step *= (2, 2.5, 2)[k % 3]
        k += 1
    return [step * i for i in range(int(maximum / step * (1 + 1e-9)) + 1)]


def shown(tick):
    """A tick as text."""
    return f"{tick:,.10g}"
