"""The wording of errors: the updaters."""

import cygrad as cg
from cygrad.data import DataLoader
from wrong import update_with

Updater = cg.trainers.Updater
Scaling = cg.trainers.DynamicLossScalingUpdater


class Solver:
    """What an updater needs of a solver."""

    def zero_grad(self):
        pass

    update = check_inf_or_nan_grad = scale_grad = zero_grad


class Decaying(Solver):
    weight_decay = Solver.zero_grad


def loss():
    pass


def generated(*batch):
    yield


async def waiting(i):
    pass


def repeated(grads):
    Updater(Solver(), loss, grads=grads(cg.ones(2).attach_grad()))


CASES = [
    (lambda: Updater(loss, Solver()), TypeError,
     "Updater: solver must have zero_grad, update, as the solvers of cygrad.optim have; got a value of type function "
     "without zero_grad, update"),
    (lambda: Updater(cg.optim.Sgd, loss), TypeError,
     "Updater: solver must be an instance, got the class Sgd; create one, Sgd(...)"),
    (lambda: Updater(Solver(), cg.nn.MSELoss), TypeError,
     "Updater: loss must be an instance, got the class MSELoss; create one, MSELoss(...)"),
    (lambda: Updater(Solver(), loss, comm=Solver), TypeError,
     "Updater: comm must be an instance, got the class Solver; create one, Solver(...)"),
    (lambda: Scaling(Solver(), generated), TypeError,
     "DynamicLossScalingUpdater: loss must be a function that runs when it is called, got a generator function"),
    (lambda: Updater(Solver(), loss, generated), TypeError,
     "Updater: data_feeder must be a function that runs when it is called, got a generator function; call it and pass "
     "__next__ of the result"),
    (lambda: Updater(Solver(), loss, update_callback_on_start=waiting), TypeError,
     "Updater: update_callback_on_start must be a function that runs when it is called, got a coroutine function"),
    (lambda: Updater(Solver(), loss, comm_callback_on_finish=[loss, generated]), TypeError,
     "Updater: comm_callback_on_finish must be a function that runs when it is called, got a generator function"),
    (lambda: Updater(Solver(), loss, grads=cg.nn.Sequential(cg.nn.Tanh())), TypeError,
     "Updater: grads must be a list of variables or gradient tensors, got a value of type <*>Sequential; pass its "
     "parameters() or named_parameters()"),
    (lambda: Updater(Solver(), loss, grads=cg.nn.Tanh().parameters), TypeError,
     "Updater: grads must be a list of variables or gradient tensors, got a value of type method; call it, with ()"),
    (lambda: Scaling(Solver(), loss, weight_decay=0.1), TypeError,
     "DynamicLossScalingUpdater: solver must have zero_grad, update, check_inf_or_nan_grad, scale_grad, weight_decay, "
     "as the solvers of cygrad.optim have; got a value of type wordings.trainers.Solver without weight_decay"),
    (lambda: Updater(Solver(), cg.zeros(3)), TypeError,
     "Updater: loss must be a function that runs the forward pass and returns the loss, got a float32 tensor of shape "
     "(3,); operations run immediately, so wrap them in a function of the batch"),
    (lambda: Updater(Solver(), loss, [1, 2]), TypeError,
     "Updater: data_feeder must be a function without arguments that returns a batch, got [1, 2]; for an iterable, "
     "pass iter(batches).__next__"),
    (lambda: Updater(Solver(), loss, DataLoader([1, 2])), TypeError,
     "Updater: data_feeder must be a function without arguments that returns a batch, got <*>; pass its next"),
    (lambda: Updater(Solver(), loss, grads=iter([])), ValueError,
     "Updater: grads is an iterator without elements, and an iterator can be read once; pass a list, such as "
     "[*model.parameters()]"),
    (lambda: Updater(Solver(), loss, clear_buffer=1), TypeError,
     "Updater: clear_buffer must be True or False, got 1"),
    (lambda: Updater(Solver(), loss, comm=3), TypeError,
     "Updater: comm must have all_reduce(arrays, division=False, inplace=False), got 3"),
    (lambda: Updater(Solver(), loss, accum_grad=2.0), TypeError,
     "Updater: accum_grad must be an integer, got 2.0"),
    (lambda: Updater(Solver(), loss, accum_grad=True), TypeError,
     "Updater: accum_grad must be an integer, got True"),
    (lambda: Updater(Solver(), loss, accum_grad=0), ValueError,
     "Updater: accum_grad must be at least 1, got 0"),
    (lambda: Updater(Solver(), loss, grads=3), TypeError,
     "Updater: grads must be a list of variables or gradient tensors, got 3"),
    (lambda: Updater(Solver(), loss, grads=["w"]), TypeError,
     "Updater: grads[0] must be a variable or a gradient tensor, got 'w'"),
    (lambda: Updater(Solver(), loss, grads=[cg.zeros(2), cg.GradientSlice(cg.tensor([0]), cg.zeros((1, 2)))]),
     TypeError,
     "Updater: grads[1] is a GradientSlice, and all_reduce adds tensors; assign its to_dense() in a "
     "comm_callback_on_start, or use embedding() with sparse=False"),
    (lambda: repeated(lambda w: [w, w]), ValueError,
     "Updater: grads[1] is the same tensor as grads[0]; each gradient is summed once, so list it once"),
    (lambda: repeated(lambda w: [w, w.grad]), ValueError,
     "Updater: grads[1] is a gradient and its variable, like grads[0]; each gradient is summed once, so list it once"),
    (lambda: repeated(lambda w: [w.grad, w.grad.reshape(2)]), ValueError,
     "Updater: grads[1] shares memory with grads[0], which would be summed twice; list one of them, or use a copy()"),
    (lambda: Updater(Solver(), loss, comm_callback_on_start=3), TypeError,
     "Updater: comm_callback_on_start must be a function of i, or an iterable of functions, got 3"),
    (lambda: Updater(Solver(), loss, update_callback_on_finish=(loss, None)), TypeError,
     "Updater: update_callback_on_finish[1] must be a function of i, got None"),
    (lambda: update_with(lambda w: None), TypeError,
     "Updater: loss must return a tensor, it returned None"),
    (lambda: update_with(lambda w: w.detach()), RuntimeError,
     "Updater: the loss, of shape (2,), does not depend on a variable; compute it from the parameters, without "
     "detach() or no_grad()"),
    (lambda: Scaling(Solver(), loss, scale="x"), TypeError,
     "DynamicLossScalingUpdater: scale must be a number, got 'x'"),
    (lambda: Scaling(Solver(), loss, scale=0), ValueError,
     "DynamicLossScalingUpdater: scale must be at least 1.17549e-38 and at most 8.50706e+37, got 0"),
    (lambda: Scaling(Solver(), loss, scaling_factor=1), ValueError,
     "DynamicLossScalingUpdater: scaling_factor must be greater than 1 and finite, got 1"),
    (lambda: Scaling(Solver(), loss, N=0), ValueError,
     "DynamicLossScalingUpdater: N must be at least 1, got 0"),
    (lambda: Scaling(Solver(), loss).load_state_dict({}), ValueError,
     "DynamicLossScalingUpdater.load_state_dict takes what state_dict() returned, a dict with scale, scaling_factor, N"
     ", clean; got []"),
    (lambda: Scaling(Solver(), loss).load_state_dict({"scale": 8, "scaling_factor": 2, "N": 0, "clean": 2}),
     ValueError, "DynamicLossScalingUpdater.load_state_dict: N must be at least 1, got 0"),
    (lambda: Scaling(Decaying(), loss, weight_decay=-1), ValueError,
     "DynamicLossScalingUpdater: weight_decay must be at least 0 and finite, got -1"),
]
