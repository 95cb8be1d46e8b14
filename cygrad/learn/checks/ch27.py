"""Checks of chapter 27."""

import numpy as np

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, Workspace
from cygrad.learn.checking import equal


def constant(reader):
    rng = np.random.default_rng(0)
    net, workspace = Net.capture(reader.centred, ((4, 3), "float32")), Workspace()
    for n in (4, 2, 9):
        x = rng.normal(size=(n, 3)).astype("float32")
        equal(f"centred() of {n} rows", reader.centred(cg.tensor(x)), x - x.mean(0), "The function itself was right.",
              [(x - x.mean(), "This is one mean for all columns."), (x - x.mean(1, keepdims=True),
                                                                     "This is a mean for each row: take axis 0.")])
        workspace.feed(net.inputs[0], x)
        workspace.run(net)
        equal(f"Captured with 4 rows, the net on {n} rows", workspace.fetch(net.outputs[0]), x - x.mean(0),
              "An operator of the net depends on the rows of the capture.",
              [(x - x.sum(0) / 4, "It divides by 4, the rows of the capture. `x.mean(0)` divides by the rows of each "
                                  "run.")])


def replay(reader):
    x, t = cg.random.Generator(0).normal((8, 4)), cg.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    calls = []

    class Counting(nn.Linear):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)

    def made():
        cg.random.seed(0)
        model = Counting(4, 3)
        return model, cg.optim.Adam(model.parameters(), lr=0.1)

    model, solver = made()
    right = []
    for _ in range(5):
        solver.zero_grad()
        with cg.record(): loss = cg.cross_entropy(model(x), t)
        loss.backward()
        solver.update()
        right.append(loss.item())
    del loss
    calls.clear()
    got = reader.train(*made(), x, t, 5)
    equal("The list of losses", got, right, "A run of the net is a step, on the parameters of the model.",
          [([right[0]] * 5, "The loss does not fall: the captured function must call backward() and solver.update(), "
                            "and each step must run the "
                            "net."), (right[1:] + right[-1:], "Fetch the loss after each run.")])
    equal("The number of calls of the model", len(calls), 1, "Capture once and run the net in each step.",
          [(5, "Each step has called the model. `workspace.run(net)` repeats the kernel calls without it.")])
