"""The models of rows B to G and L written with cg.nn, and their training with a solver of cg.optim.

Each runs the operations of the row's bare version, with the same initial arrays, so their losses are equal and the
difference in time is the cost of the layers. Before a step, the solver's zero_grad() is called, because gradients of
layers accumulate; the bare versions overwrite them."""

import cygrad as cg
from benchmarks.parts import Trainer, over_steps
from cygrad import nn


class SquaredError(nn.Module):
    """The loss of models.py, in the same three operations."""

    def forward(self, y, target):
        d = y - target
        return (d * d).mean()


def perceptron(problem):
    """models.Problem."""
    made = []
    for a, b in zip(problem.sizes, problem.sizes[1:], strict=False): made += [nn.Linear(a, b), nn.ReLU()]
    loss = nn.CrossEntropyLoss() if problem.loss == "cross_entropy" else SquaredError()
    return nn.Sequential(*made[:-1]), loss


class LeNet(nn.Module):
    """convolutions.Network."""

    def __init__(self):
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.linear1, self.linear2, self.linear3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)
        self.pool, self.flatten = nn.MaxPool2d(2), nn.Flatten()

    def forward(self, x):
        h = self.pool(self.conv1(x, "relu"))
        h = self.pool(self.conv2(h, "relu"))
        h = self.linear1(self.flatten(h), "relu")
        return self.linear3(self.linear2(h, "relu"))


class Gpt(nn.Module):
    """gpt.Gpt."""

    def __init__(self, net):
        d = net.width
        self.tokens, self.positions = nn.Embedding(net.vocabulary, d), nn.Parameter(cg.zeros((net.length, d)))
        self.blocks = nn.Sequential(*(
            nn.TransformerBlock(d, net.heads, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True, causal=True)
            for _ in range(net.layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, net.vocabulary, bias=False)

    def forward(self, x):
        logits = self.head(self.norm(self.blocks(self.tokens(x) + self.positions)))
        return logits.reshape((-1, logits.shape[-1]))

    def names(self):
        """The names of the parameters in the order of gpt.Gpt.arrays()."""
        parts = "norm1", "self_attn.in_proj_", "self_attn.out_proj", "norm2", "linear1", "linear2"
        blocks = [f"blocks.{i}.{part}{'' if part.endswith('_') else '.'}{kind}" for i in range(len(self.blocks))
                  for part in parts for kind in ("weight", "bias")]
        return ["tokens.weight", "positions", *blocks, "norm.weight", "norm.bias", "head.weight"]


class Lstm(nn.Module):
    """sequences.Lstm."""

    def __init__(self, net):
        self.lstm = nn.LSTM(net.width, net.hidden)

    def forward(self, x):
        return self.lstm(x)[0]


class Cells(nn.Module):
    """sequences.Lstm with cells: a module called for each step."""

    def __init__(self, net):
        self.input, self.state = nn.Linear(net.width, 4 * net.hidden), nn.Linear(net.hidden, 4 * net.hidden)

    def forward(self, x):
        h = c = cg.zeros((x.shape[1], self.state.in_features))
        return over_steps(cg, self.gates, x, h, c)

    def gates(self, x, h):
        return cg.split(self.input(x) + self.state(h), 4, 1)

    def names(self):
        """The names of the parameters in the order of nn.LSTM's."""
        return ["input.weight", "state.weight", "input.bias", "state.bias"]


# By the name of the problem's class: a function that makes the model and the loss.
MODELS = {"Problem": perceptron,
          "Network": lambda _: (LeNet(), nn.CrossEntropyLoss()),
          "Gpt": lambda net: (Gpt(net), nn.CrossEntropyLoss()),
          "Lstm": lambda net: ((Cells if net.cells else Lstm)(net), nn.MSELoss()),
          "Table": lambda net: (nn.Embedding(net.rows, net.width, sparse=net.sparse), nn.MSELoss())}


def arrays_of(problem):
    """The initial arrays in order."""
    if hasattr(problem, "arrays"): return problem.arrays()
    return [a for layer in problem.layers() for a in layer]


def layers_trainer(problem):
    """The Trainer of a Problem, a Network or a Net."""
    model, loss_of = MODELS[type(problem).__name__](problem)
    names = model.names() if hasattr(model, "names") else [name for name, _ in model.named_parameters()]
    model.load_state_dict(dict(zip(names, arrays_of(problem), strict=True)))
    adam = getattr(problem, "solver", "sgd") == "adam"
    solver = cg.optim.Adam(problem.lr) if adam else cg.optim.Sgd(problem.lr)
    solver.set_parameters(model.named_parameters())

    def step(x, target):
        solver.zero_grad()
        with cg.record(): loss = loss_of(model(x), target)
        loss.backward()
        solver.update()
        return loss

    return Trainer(step, cg.tensor, lambda loss: loss.item())
