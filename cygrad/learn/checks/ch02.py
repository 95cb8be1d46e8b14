"""Checks of chapter 2."""

import cygrad as cg
from cygrad import nn
from cygrad.learn.checking import equal, expect


def accuracy(reader):
    scores = cg.tensor([[0.1, 2.0, 0.3], [3.0, -1.0, 0.0], [0.0, 0.5, 0.2], [-3.0, -2.0, -1.0]])
    labels = cg.tensor([1, 0, 2, 2])
    got = reader.accuracy(scores, labels)
    equal("accuracy() of four images, of which three are right,", got, 0.75,
          "Compare `scores.argmax(1)` with the labels, and take the mean.",
          [(3, "This is the number of images that are right. Divide it by the number of images."),
           (0.25, "This is the share of images that are wrong.")])
    expect(isinstance(got, float), f"accuracy() is {type(got).__name__}, but a float is right: `.item()` gives one.")
    equal("accuracy() of two images, both right,", reader.accuracy(scores[:2], labels[:2]), 1.0,
          "Divide by the number of these images.")


def epoch(reader):
    images, labels = cg.random.Generator(0).normal((10, 4)), cg.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0])
    first = cg.random.Generator(1).normal((3, 4))
    seen = []

    class Noting(nn.Linear):
        def forward(self, x):
            seen.append((x.shape[0], cg.is_recording()))
            return super().forward(x)

    def run(pass_over):
        cg.random.seed(0)
        model = Noting(4, 3)
        model.weight.detach()[...] = first
        solver = cg.optim.Sgd(model.parameters(), lr=0.5)
        return pass_over(model, solver), model.weight.detach().numpy().copy()

    def right(model, solver):
        losses = []
        for start in (0, 4, 8):
            solver.zero_grad()
            with cg.record(): loss = cg.cross_entropy(model(images[start:start + 4]), labels[start:start + 4])
            loss.backward()
            solver.update()
            losses.append(loss.item())
        return losses

    losses, weight = run(right)
    seen.clear()
    got, found = run(lambda model, solver: reader.epoch(model, solver, images, labels, 4))
    sizes = [n for n, _ in seen]
    equal("For 10 images and batches of 4, the sizes of the batches", sizes, [4, 4, 2],
          "Take images[start:start + size] for each start from 0 in steps of size.",
          [([4, 4], "The last batch is smaller, and it is left out."), ([10], "All images are in one batch.")])
    expect(all(recording for _, recording in seen),
           "The model is called outside of `cg.record()`, so backward has no graph to go through.")
    expect(not any(hasattr(v, "backward") for v in got),
           "The list has tensors. Append `loss.item()`: a tensor keeps its graph alive, and all that the graph has "
           "saved.")
    equal("The list of losses", got, losses, "Compute each loss before the update of its batch. Begin each batch with "
                                             "zero_grad(): otherwise the gradients of the batches before are added.")
    equal("The weight after the pass", found, weight,
          "For each batch: zero_grad(), the loss inside of record(), backward(), update().")
