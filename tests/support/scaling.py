"""A solver for the tests of loss scaling: Sgd, with the methods that it lacks written in NumPy."""

import numpy as np

import cygrad as cg


class Scaling(cg.optim.Sgd):
    def reached(self):
        return [x for x in self.get_parameters().values() if x.fresh_grad]

    def check_inf_or_nan_grad(self):
        return any(not np.isfinite(x.grad.numpy()).all() for x in self.reached())

    def scale_grad(self, scale):
        for x in self.reached(): x.grad *= scale

    def weight_decay(self, rate):
        for x in self.reached(): x.grad += rate * x.detach()


Checked = cg.optim.Sgd if hasattr(cg.optim.Sgd, "check_inf_or_nan_grad") else Scaling
