"""The networks of the demo and its training loop."""

import cygrad as cg
from cygrad import nn


def mlp():
    """Scores (n, 10) of images (n, 1, 8, 8): three linear layers."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def train(net, solver, images, labels, batches):
    """Run one training step for each batch, an array of row numbers. Returns the losses."""
    losses = []
    for rows in batches:
        net.zero_grad()
        with cg.record():
            loss = cg.cross_entropy(net(cg.asarray(images[rows])), labels[rows])
        loss.backward()
        solver.update()
        losses.append(loss.item())
    return losses


def cnn():
    """Scores (n, 10) of images (n, 1, 8, 8): three convolutions with batch normalization, pooled to 2 x 2."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(256, 10))
