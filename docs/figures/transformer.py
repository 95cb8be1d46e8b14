"""Chapter 10: a transformer of tensors and operators, which the chapter quotes, and pictures of it."""

import math

import numpy as np
from drawing import BACKWARD, FORWARD, GREY, box, label, page, svg

import cygrad as cg


def attention(q, k, v):
    """The results and the weights for queries, keys and values (..., steps, size). Step i sees steps 0 to i."""
    scores = q @ cg.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    i = cg.arange(q.shape[-2])
    weights = cg.softmax(cg.where(i[:, None] >= i, scores, -math.inf))
    return weights @ v, weights


def heads(x, n):
    """(batch, steps, n size) as (batch, n, steps, size)."""
    return cg.permute(x.reshape(*x.shape[:2], n, -1), (0, 2, 1, 3))


def self_attention(w, x, n, head=attention):
    """The result of n heads, (batch, steps, width) like x, and their weights (batch, n, steps, steps)."""
    q, k, v = cg.split(cg.linear(x, w["self_attn.in_proj_weight"], w["self_attn.in_proj_bias"]), 3, -1)
    y, weights = head(heads(q, n), heads(k, n), heads(v, n))
    y = cg.permute(y, (0, 2, 1, 3)).reshape(x.shape)
    return cg.linear(y, w["self_attn.out_proj.weight"], w["self_attn.out_proj.bias"]), weights


def norm(x, weight, bias):
    """Each vector of x with mean 0 and variance 1, times `weight`, plus `bias`."""
    d = x - x.mean(-1, keepdims=True)
    return d / cg.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * weight + bias


def mlp(w, x):
    """Two linear layers for each vector of x."""
    return cg.linear(cg.relu(cg.linear(x, w["linear1.weight"], w["linear1.bias"])), w["linear2.weight"],
                     w["linear2.bias"])


def block(w, x, n):
    """A layer of the transformer: x (batch, steps, width) plus what attention and the MLP add, and the weights."""
    y, weights = self_attention(w, norm(x, w["norm1.weight"], w["norm1.bias"]), n)
    x = x + y
    return x + mlp(w, norm(x, w["norm2.weight"], w["norm2.bias"])), weights


def block_parameters(width, hidden, generator):
    """Variables for `block` by name. The variance of the numbers keeps that of what they multiply."""
    shapes = {"self_attn.in_proj": (3 * width, width), "self_attn.out_proj": (width, width),
              "linear1": (hidden, width), "linear2": (width, hidden)}
    w = {}
    for name, (rows, columns) in shapes.items():
        weight = name + ("_weight" if name.endswith("in_proj") else ".weight")
        w[weight] = generator.normal((rows, columns), 0.0, columns ** -0.5)
        w[weight.replace("weight", "bias")] = cg.zeros(rows)
    for name in ("norm1", "norm2"): w[f"{name}.weight"], w[f"{name}.bias"] = cg.ones(width), cg.zeros(width)
    return {name: x.requires_grad_() for name, x in w.items()}


LETTERS, LENGTH = "abcdefghijklmnopqrstuvwxyz=", 6


def lines(rng, n):
    """n random words, each followed by "=" and the reversed word, as codes: inputs and targets (n, 12)."""
    words = rng.integers(0, 26, (n, LENGTH))
    codes = np.concatenate([words, np.full((n, 1), 26), words[:, ::-1]], 1)
    return codes[:, :-1], codes[:, 1:]


def model_parameters(width, hidden, generator):
    """The variables of a block, of the embeddings of characters and positions, and of the scores."""
    w = block_parameters(width, hidden, generator)
    for name, rows in (("characters", 27), ("positions", 2 * LENGTH), ("scores", 27)):
        w[name] = generator.normal((rows, width), 0.0, width ** -0.5).requires_grad_()
    return w


def model(w, codes, n=2):
    """The scores (batch, steps, 27) of the characters that follow `codes` (batch, steps), and the weights."""
    x, weights = block(w, w["characters"][codes] + w["positions"][:codes.shape[1]], n)
    return cg.linear(x, w["scores"]), weights


def train(w, steps):
    """Training on the reversed letters. Returns the loss of each step."""
    rng, solver, losses = np.random.default_rng(0), cg.optim.Adam(w.values(), lr=0.01), []
    for _ in range(steps):
        codes, targets = lines(rng, 64)
        solver.zero_grad()
        with cg.record():
            scores = model(w, codes)[0][:, LENGTH:].reshape(-1, 27)
            loss = cg.cross_entropy(scores, targets[:, LENGTH:].reshape(-1))
        loss.backward()
        solver.update()
        losses.append(loss.item())
    return losses


# ---- pictures --------------------------------------------------------------------------------------------------------

def fused(q, k, v):
    """The operator in the place of `attention`. It has no weights to return."""
    return cg.scaled_dot_product_attention(q, k, v, is_causal=True), None


def kept_bytes(parts, x):
    """What the graph keeps for backward of each part, for x (batch, steps, width), as {name: bytes}. A part gets the
    result of the one before it."""
    found, before = {}, 0
    with cg.record() as tape:
        for name, part in parts.items():
            x = part(x)
            found[name], before = tape.saved_bytes - before, tape.saved_bytes
    return found


def memory_of_a_block(batch, steps, width, n):
    """kept_bytes of a block by hand, and with the operators of cygrad."""
    w = block_parameters(width, 4 * width, cg.random.Generator(0))
    x = cg.zeros((batch, steps, width)).requires_grad_()

    def linear(name, mark=".", **options):
        return lambda x: cg.linear(x, w[f"{name}{mark}weight"], w[f"{name}{mark}bias"], **options)

    def attend(head):
        def result(x):
            y, _ = head(*(heads(part, n) for part in cg.split(x, 3, -1)))
            return cg.permute(y, (0, 2, 1, 3)).reshape(batch, steps, width)
        return result

    def parts(norm, head, linear1):
        return {"norm1": lambda x: norm(x, w["norm1.weight"], w["norm1.bias"]),
                "in_proj": linear("self_attn.in_proj", "_"), "attention": attend(head),
                "out_proj": linear("self_attn.out_proj"),
                "norm2": lambda x: norm(x, w["norm2.weight"], w["norm2.bias"]),
                "linear1, relu": linear1, "linear2": linear("linear2")}

    by_hand = parts(norm, attention, lambda x: cg.relu(linear("linear1")(x)))
    operators = parts(cg.layer_norm, fused, linear("linear1", activation="relu"))
    return kept_bytes(by_hand, x), kept_bytes(operators, x)


def memory():
    """What each part of a block keeps, as bars."""
    by_hand, operators = memory_of_a_block(8, 256, 128, 4)
    scale = 420 / max(by_hand.values())
    parts = [label(10, 20, "bytes kept for backward, x of shape (8, 256, 128), 4 heads", font_weight="bold")]
    y = 36
    for name in by_hand:
        parts.append(label(10, y + 20, name))
        for kept, color in ((by_hand[name], BACKWARD), (operators[name], FORWARD)):
            parts += [box(110, y, kept * scale, 14, color, about=f"{name}: {kept:,} bytes"),
                      label(116 + kept * scale, y + 12, f"{kept:,}")]
            y += 15
        y += 10
    for x, color, about, kept in ((110, BACKWARD, "by hand", by_hand), (350, FORWARD, "operators", operators)):
        parts += [box(x, y + 4, 14, 14, color),
                  label(x + 20, y + 16, f"{about}: {sum(kept.values()):,} in all")]
    return svg(640, y + 30, parts)


WORD = "python=nohtyp"


def learned():
    """Where the trained heads look while they reverse a word: the characters with more than half of the weight."""
    w = model_parameters(32, 64, cg.random.Generator(0))
    train(w, 150)
    weights = model(w, np.array([[LETTERS.index(c) for c in WORD[:-1]]]))[1].numpy()[0, :, LENGTH:]
    parts = []
    for h, head in enumerate(weights):
        left = 84 + 380 * h
        parts.append(label(left, 20, f"head {h}", font_weight="bold"))
        parts += [label(left + 24 * j + 8, 40, c, fill=GREY) for j, c in enumerate(WORD[:-1])]
        for i, row in enumerate(head, LENGTH):
            top = 48 + 24 * (i - LENGTH)
            parts.append(label(left - 70, top + 16, f"{WORD[i]}, then {WORD[i + 1]}"))
            for j, weight in enumerate(row):
                color = "#cbd5e1" if j > i else FORWARD if weight > 0.5 else "#fff"
                parts.append(box(left + 24 * j, top, 24, 24, color, about=f"{WORD[i]} at {i} sees {WORD[j]} at {j}"))
    return svg(780, 200, parts)


FIGURES = {"block-memory.svg": memory, "learned-attention.svg": learned,
           "query.html": lambda: page("query", WORD[:-1])}
