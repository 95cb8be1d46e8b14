"""Models of a few layers, each with data: a function that makes both."""

import cygrad as cg
from cygrad import nn


class Block(nn.Module):
    def __init__(self, width):
        self.a, self.b, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)

    def forward(self, x): return x + self.drop(self.b(cg.gelu(self.a(x))))


class Last(nn.Module):
    """The last state of two recurrent layers."""

    def __init__(self): self.first, self.second, self.head = nn.LSTM(8, 16), nn.LSTM(16, 16), nn.Linear(16, 4)

    def forward(self, x): return self.head(self.second(cg.tanh(self.first(x)[0]))[0][-1])


class Attending(nn.Module):
    """A block with attention, and the mean over its steps."""

    def __init__(self): self.block, self.head = nn.TransformerBlock(16, 4, 64), nn.Linear(16, 4)

    def forward(self, x): return self.head(self.block(x)).mean(0)


class Decoder(nn.Module):
    """Blocks with attention between an embedding and a head; `chunk` rows of logits at a time, or all."""

    def __init__(self, classes, width, blocks):
        self.embedding, self.norm = nn.Embedding(classes, width), nn.LayerNorm(width)
        self.blocks = nn.Sequential(*[nn.TransformerBlock(width, 4, 4 * width) for _ in range(blocks)])
        self.head = nn.Linear(width, classes, bias=False)

    def forward(self, tokens, labels, chunk=None):
        h = self.norm(self.blocks(self.embedding(tokens))).reshape((labels.size, -1))
        if chunk is None: return cg.cross_entropy(self.head(h), labels)
        return cg.linear_cross_entropy(h, self.head.weight, labels, chunk=chunk)


MODELS = {
    "blocks": lambda: (nn.Sequential(*[Block(16) for _ in range(6)], nn.Linear(16, 4)), cg.random.normal((64, 16))),
    "convolutions": lambda: (nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * 36, 4)), cg.random.normal((8, 1, 16, 16))),
    "lstm": lambda: (Last(), cg.random.normal((12, 8, 8))),
}
WITH_ATTENTION = {**MODELS, "attention": lambda: (Attending(), cg.random.normal((12, 8, 16)))}
