"""Checks of chapter 3."""

import tempfile
from pathlib import Path

import cygrad as cg
from cygrad import nn
from cygrad.learn.checking import equal, expect


def made(seed):
    cg.random.seed(seed)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, cg.optim.Adam(model.named_parameters(), lr=0.1)


def trained(model, solver, steps):
    for step in steps:
        x = cg.random.Generator(step).normal((8, 3))
        solver.zero_grad()
        with cg.record(): loss = cg.square(model(x) - x.sum(axis=1, keepdims=True)).mean()
        loss.backward()
        solver.update()
    return model[0].weight.detach().numpy().copy()


def resume(reader):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = trained(*made(0), range(6))
        model, solver = made(0)
        half = trained(model, solver, range(3))
        reader.module.save(folder, model, solver)
        files = list(folder.iterdir())
        expect(files, "save() has written no file into the folder.")
        again, other = made(1)
        reader.module.load(folder, again, other)
        equal("After load(), the first weight", again[0].weight, half,
              "Pass what `cg.load` returns to `model.load_state_dict`.")
        t = other.get_states()["0.weight"].t
        equal("After load(), the number of updates that the solver knows of", t, 3,
              "Restore the solver too, by `solver.load_states`: Adam's means and its count of steps belong to the run.")
        equal("After three more steps, the first weight", trained(again, other, range(3, 6)), whole,
              "The run depends on more than was restored.", rtol=0)


def deploy(reader):
    cg.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    x = cg.random.Generator(0).normal((5, 4))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "model.cg")
        reader.module.export(model, cg.ones((5, 4)), path)
        expect(path.is_file(), "export() has written no file at `path`: call `net.save(path, weights=True)`.")
        right = model(x).detach().numpy().copy()
        for p in model.parameters(): p.detach().fill_(0.0)
        net = cg.graph.load(path)
        inputs = list(net.inputs)
        expect(len(inputs) == 1, f"The saved net has the inputs {', '.join(inputs)}: the weights are missing in the "
                                 "file. Save with `weights=True`.")
        equal("The result of the loaded net", net(x), right, "The net must be that of the model as it is.")
        equal("The result of the loaded net for 2 rows in place of 5", net(x[:2]), right[:2], "Rows are independent.")
