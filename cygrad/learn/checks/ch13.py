"""Checks of chapter 13."""

import cygrad as cg
from cygrad import nn
from cygrad.learn.checking import equal, expect


def predict(reader):
    seen = []

    class Layered(nn.Module):
        def __init__(self): self.layer = nn.Linear(3, 2)

        def forward(self, x):
            seen.append((cg.is_recording(), cg.is_training()))
            return cg.dropout(self.layer(x), 0.5)

    model, x = Layered(), cg.ones((4, 3))
    right = model.layer(x).detach()
    for outside in (False, True):
        with cg.record() if outside else cg.pause():
            before = cg.is_recording(), cg.is_training()
            y = reader.predict(model, x)
            after = cg.is_recording(), cg.is_training()
        where = "inside of record()" if outside else "outside of record()"
        recording, training = seen[-1]
        expect(not recording, f"Called {where}, the model records. `cg.pause()` switches recording off, "
                              "`cg.predict_mode()` does not.")
        expect(not training, f"Called {where}, the model is in train mode, so dropout removes results. `cg.pause()` "
                             "switches train mode off, `cg.no_grad()` does not.")
        equal(f"Called {where}, the pair of flags afterwards", after, before,
              "A scope restores what it has found; set_recording() does not.")
        equal(f"Called {where}, the result", y, right, "It is model(x).")


def passed_through(reader):
    numbers = [-2.0, -0.5, 0.5, 3.0]
    x = cg.tensor(numbers).attach_grad()
    with cg.record(): y = reader.step(x)
    equal("step([-2, -0.5, 0.5, 3])", y, [0.0, 0.0, 1.0, 1.0], "It is 1 above 0 and else 0.",
          [(numbers, "This is the identity in forward, too.")])
    expect(y.grad_fn is not None, "The result has no graph, so no gradient can pass. Add something with the gradient "
                                  "of x whose value cancels.")
    y.backward(cg.tensor([1.0, 2.0, 3.0, 4.0]))
    equal("The gradient of x for the head gradient (1, 2, 3, 4)", x.grad, [1.0, 2.0, 3.0, 4.0],
          "It passes unchanged: x + stop_gradient(step - x) has the value of the step and the derivative of x.",
          [([0.0] * 4, "Backward sees a step whose derivative is 0."),
           ([2.0, 4.0, 6.0, 8.0], "x has two paths to the result. Stop the gradient of one.")])
