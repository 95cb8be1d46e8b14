"""A run that was interrupted (chapter 3).

Write `save(folder, model, solver)` and `load(folder, model, solver)`. The first writes two files into the folder (a
pathlib.Path): the parameters of the model with `cg.save`, and the states of the solver with `solver.save_states`. The
second reads both into a model and a solver that were made in the same way. A run that is saved and loaded must then
continue with the same bits as one that was not interrupted.
"""

import cygrad as cg


def save(folder, model, solver):
    ...  # your code


def load(folder, model, solver):
    ...  # your code
