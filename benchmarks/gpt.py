"""A language model of the GPT kind: 4 layers, width 128, 4 heads, 128 tokens, batch 8, vocabulary 96, float32, made-up
tokens.

A layer adds attention and a perceptron 128-512-128 with gelu to its input, each after a layer_norm; attention is
scaled_dot_product_attention, causal, of the three parts of one projection. One step is forward, cross_entropy,
backward and the update of Adam. Both libraries run the same operations. PyTorch's optimizer is torch.optim.Adam, with
default settings and with fused=True. The learning rate is 1e-6 during timing. Before timing, five steps at 1e-3 must
give equal losses."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.models import losses, timed_steps
from benchmarks.nets import Net
from benchmarks.work import Case

THREADS = None
LIBRARIES = ("cygrad", "PyTorch")
VARIANTS = (("fused", dict(fused=True)),)
PER_LAYER = 12              # parameters of a layer


@dataclass(frozen=True)
class Gpt(Net):
    """The sizes of the model, of a batch and of the vocabulary."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    length: int = 128
    batch: int = 8
    vocabulary: int = 96

    def arrays(self):
        """The tokens' vectors and the positions'; for each layer scale and shift of a layer_norm, weight and bias of
        the projection of queries, keys and values and of the result's, and the same for the perceptron; then the last
        layer_norm and the weight of the logits."""
        rng, d = np.random.default_rng(0), self.width

        def normal(*shape): return rng.normal(0, 0.02, shape).astype(np.float32)

        def norm(): return np.ones(d, np.float32), np.zeros(d, np.float32)

        made = [normal(self.vocabulary, d), normal(self.length, d)]
        for _ in range(self.layers):
            made += [*norm(), normal(3 * d, d), normal(3 * d), normal(d, d), normal(d),
                     *norm(), normal(4 * d, d), normal(4 * d), normal(d, 4 * d), normal(d)]
        return [*made, *norm(), normal(self.vocabulary, d)]

    def data(self):
        """Tokens (batch, length) and the next ones, (batch times length,)."""
        tokens = np.random.default_rng(1).integers(0, self.vocabulary, (self.batch, self.length + 1))
        return tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1)

    def cygrad_loss(self, parameters):
        import cygrad as cg

        def norm(x, scale, shift): return cg.layer_norm(x, scale, shift)

        def split(x): return cg.split(x, 3, -1)

        return self.loss(parameters, cg.embedding, cg.linear, norm, split, cg)

    def torch_loss(self, parameters):
        import torch
        from torch.nn import functional as F

        def norm(x, scale, shift): return F.layer_norm(x, (self.width,), scale, shift)

        def split(x): return torch.chunk(x, 3, -1)

        return self.loss(parameters, F.embedding, F.linear, norm, split, F)

    def loss(self, parameters, embedding, linear, norm, split, on):
        """The loss by a library's functions. `on` has the activations and losses."""
        tokens, positions, *rest = parameters
        *layers, scale, shift, head = rest
        layers = [layers[i:i + PER_LAYER] for i in range(0, len(layers), PER_LAYER)]

        def parts(x):
            return [p.reshape((*x.shape[:2], self.heads, -1)).permute((0, 2, 1, 3)) for p in split(x)]

        def loss_of(x, target):
            n, t = x.shape
            h = embedding(x, tokens) + positions
            for scale1, shift1, qkv, b_qkv, out, b_out, scale2, shift2, up, b_up, down, b_down in layers:
                q, k, v = parts(linear(norm(h, scale1, shift1), qkv, b_qkv))
                a = on.scaled_dot_product_attention(q, k, v, is_causal=True)
                h = h + linear(a.permute((0, 2, 1, 3)).reshape((n, t, self.width)), out, b_out)
                h = h + linear(on.gelu(linear(norm(h, scale2, shift2), up, b_up)), down, b_down)
            return self.loss_of_features(norm(h, scale, shift).reshape((n * t, self.width)), head, target, linear, on)

        return loss_of

    def loss_of_features(self, x, head, target, linear, on):
        """The loss by the features (tokens, width) and the weight of the logits."""
        return on.cross_entropy(linear(x, head), target)


NET = Gpt("adam", 1e-3)


def cases(libraries, quick, net=NET):
    """The step."""
    x, target = net.data()
    slow = replace(net, lr=1e-6).trainers(libraries, VARIANTS)
    return [Case("step", "ms", {peer: timed_steps(make, x, target) for peer, make in slow.items()},
                 {peer: lambda make=make: losses(make, x, target)
                  for peer, make in net.trainers(libraries, VARIANTS).items()})]
