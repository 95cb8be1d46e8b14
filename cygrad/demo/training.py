"""The training loop of the demo."""

import cygrad as cg


def layer(rng, n_in, n_out):
    """A weight and a bias, both variables."""
    w = rng.normal(0, (2 / n_in) ** 0.5, (n_out, n_in))
    return cg.tensor(w, cg.float32).attach_grad(), cg.zeros(n_out).attach_grad()


def network(layers, x):
    """The scores (n, 10) of images (n, 64): linear layers with relu between them."""
    for w, b in layers[:-1]:
        x = cg.relu(cg.linear(x, w, b))
    return cg.linear(x, *layers[-1])


def train(layers, solver, images, labels, batches):
    """Run one training step for each batch, an array of row numbers. Returns the losses."""
    losses = []
    for rows in batches:
        with cg.record():
            loss = cg.cross_entropy(network(layers, cg.asarray(images[rows])), labels[rows])
        loss.backward()
        solver.update()
        losses.append(loss.item())
    return losses
