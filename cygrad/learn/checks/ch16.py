"""Checks of chapter 16."""

import cygrad as cg
from cygrad import nn
from cygrad.learn.checking import equal, expect


def measured(widths, rows):
    """The three numbers of a model that runs."""
    layers = []
    for n, m in zip(widths, widths[1:], strict=False): layers += [nn.Linear(n, m), nn.ReLU()]
    model, x = nn.Sequential(*layers[:-1]), cg.ones((rows, widths[0]))
    before = cg.memory.stats()["by_category"]["optimizer"]
    solver = cg.optim.Adam(model.parameters())
    states = cg.memory.stats()["by_category"]["optimizer"] - before
    with cg.record() as tape: y = model(x)
    del x
    result = {"parameters": sum(p.nbytes for p in model.parameters()), "optimizer": states, "saved": tape.saved_bytes}
    del y, solver
    return result


def count(reader):
    for widths, rows in (([64, 10], 32), ([64, 128, 10], 32), ([8, 16, 16, 4], 100)):
        got, right = reader.count(widths, rows), measured(widths, rows)
        expect(isinstance(got, dict) and got.keys() == right.keys(),
               f"count() returns a dict with the keys {', '.join(right)}.")
        weights = sum(4 * n * m for n, m in zip(widths, widths[1:], strict=False))
        what = f"For widths {widths} and {rows} rows, the number of bytes of "
        equal(what + "parameters", got["parameters"], right["parameters"],
              "A layer n to m has n m weights and m biases, of 4 bytes each.",
              [(weights, "The biases are missing."),
               (right["parameters"] / 4, "Count bytes: a float32 has four.")])
        equal(what + "states of Adam", got["optimizer"], right["optimizer"], "Adam keeps two means for each parameter.",
              [(right["parameters"], "Adam has two states for each parameter.")])
        equal(what + "saved tensors", got["saved"], right["saved"],
              "Each linear layer saves its input. A relu and the layer after it save the same buffer, which counts "
              "once.",
              [(4 * rows * sum(widths), "The result of the last layer is saved by nothing."),
               (4 * rows * sum(widths[1:-1]), "The first layer saves its input too, the batch: the gradient of its "
                                              "weight needs it."),
               (4 * rows * (widths[0] + 2 * sum(widths[1:-1])),
                "The results of the relus are counted twice. A buffer counts once, however many operations save it.")])


def batch(reader):
    w = cg.ones((64, 32)).attach_grad()
    planned, ran = [], []

    def step(x):
        planned.append(x.shape[0])
        try: ran.append(cg.ones(()).item())                 # (a plan has no values)
        except RuntimeError: pass
        with cg.record(): y = cg.tanh(x @ w).sum()
        y.backward()

    def batch(n): return cg.zeros((n, 64))

    def peak(n): return cg.memory.plan(step, batch(n)).peak_bytes

    for n, more in ((5, 0), (37, 100), (64, -1)):
        limit = peak(n) + more
        right = n if more >= 0 else n - 1
        planned.clear()
        got = reader.largest(step, batch, limit)
        expect(not ran, "The step was run. `cg.memory.plan(step, x)` finds the peak without computing anything.")
        equal(f"With a limit of {limit:,} bytes, the largest batch", got, right,
              "The peak of the step for this n is at most the limit, and for n + 1 it is above.",
              [(right + 1, "For this n the peak is above the limit."), (right - 1, "One row more fits.")])
        expect(len(planned) <= 20, f"It took {len(planned)} plans. Double n until the peak is above the limit, then "
                                   "halve the interval.")
    equal("With a limit of 1 byte, the largest batch", reader.largest(step, batch, 1), 0, "Not even one row fits.",
          [(1, "One row does not fit.")])
