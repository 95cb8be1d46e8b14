"""A look in between (chapter 13).

Write `predict(model, x)`: the result of the model for x in predict mode, and without recording, also if the caller is
inside of `cg.record()`. The flags of the caller are as before afterwards.
"""

import cygrad as cg


def predict(model, x):
    with cg.pause():
        return model(x)
