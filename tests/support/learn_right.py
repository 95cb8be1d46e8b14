"""Right answers to the exercises that differ from the solutions.

A row has the exercise, how a line of the solution begins, and what stands in the place of this line and all after it.
"""

RIGHT = [
    ("ch01a_slope", "    x = ", "    return cg.func.grad(lambda x: f(x).sum())(cg.tensor(numbers))\n"),
    ("ch01b_line", "    a, b = ", """\
    w = cg.tensor([0.0, 0.0]).requires_grad_()
    for _ in range(steps):
        w.grad = None
        with cg.record():
            loss = cg.mean(cg.square(w[0] * x + w[1] - y))
        loss.backward()
        with cg.no_grad():
            w -= rate * w.grad
    return w.tolist()
"""),
    ("ch02a_accuracy", "    return ", "    return (cg.argmax(scores, 1) == labels).sum().item() / len(labels)\n"),
    ("ch02b_epoch", "    losses", """\
    losses, solver_steps = [], -(-len(labels) // size)
    for k in range(solver_steps):
        rows = slice(k * size, (k + 1) * size)
        with cg.record():
            loss = cg.cross_entropy(model(images[rows]), labels[rows])
        solver.zero_grad()
        loss.backward()
        solver.update()
        losses += [float(loss)]
    return losses
"""),
    ("ch03b_deploy", "    net = ", """\
    net = cg.graph.Net.capture(model, (example.shape, "float32"), names=dict(model.named_parameters()))
    net.save(path, weights=True)
"""),
    ("ch04a_first_bad", "    for ", """\
    for k in range(len(layers)):
        x = layers[k](x)
        if cg.isnan(x).any() or cg.isinf(x).any():
            return k
    return -1
"""),
    ("ch04b_lost_gradient", "    length", """\
    length = (w * w).sum() ** 0.5
    error = cg.square(x @ w - 1.0).mean()
    return error / length
"""),
    ("ch04c_overflow", "    return", "    return cg.maximum(x, 0.0) + cg.log1p(cg.exp(-cg.maximum(x, -x)))\n"),
    ("ch04d_shapes", "    return", "    return cg.mse(predictions, targets[:, None])\n"),
    ("ch05b_backward", "        found, ", """\
        import heapq
        self.grad = 1.0
        waiting, seen = [(-self.order, self)], {self}
        while waiting:
            _, node = heapq.heappop(waiting)
            for parent, derivative in node.parents:
                parent.grad += node.grad * derivative
                if parent not in seen:
                    seen.add(parent)
                    heapq.heappush(waiting, (-parent.order, parent))
"""),
    ("ch06a_unbroadcast", "    g = ", """\
    while g.ndim > len(shape):
        g = g.sum(0)
    for axis, n in enumerate(shape):
        if n == 1:
            g = g.sum(axis, keepdims=True)
    return g
"""),
    ("ch06b_product", "    return ", "    return [np.einsum('nm,km->nk', g, w), np.einsum('nk,nm->km', x, g)]\n"),
    ("ch07a_residual", "        self.inner", """\
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y = self.inner(x)
        return y + x
"""),
    ("ch07b_tower", "        self.layers", """\
        self.all = nn.Sequential(*[m for _ in range(n) for m in (nn.Linear(width, width), nn.Tanh())])

    def forward(self, x):
        return self.all(x)
"""),
    ("ch08b_parts", "    w = ", """\
    total = 0.0
    for k in range(parts):
        rows = x[k * len(x) // parts:(k + 1) * len(x) // parts]
        total = total + cg.func.grad(lambda w: cg.square(rows @ w).mean())(w)
    return total / parts
"""),
    ("ch09b_each_sample", "    each", """\
    found = []
    for x, y in zip(xs, ys):
        g = cg.func.grad(loss)(w, x, y)
        found.append((g * g).sum() ** 0.5)
    return cg.stack(found)
"""),
    ("ch10a_attention", "    scores", """\
    mask = cg.tril(cg.ones((len(q), len(q)))) > 0
    weights = cg.softmax(cg.where(mask, q @ k.T * q.shape[1] ** -0.5, -1e30), -1)
    return weights @ v
"""),
    ("ch10b_cached", "    for ", """\
    cache.setdefault("k", []).append(k)
    cache.setdefault("v", []).append(v)
    return cg.scaled_dot_product_attention(q[None], cg.stack(cache["k"]), cg.stack(cache["v"]))[0]
"""),
    ("ch11b_keep", "    rows", """\
    return [batch[batch.sum(1).argmax().item()].tolist() for batch in batches]
"""),
    ("ch13a_predict", "    with ", "    with cg.no_grad(), cg.predict_mode():\n        return model(x)\n"),
    ("ch13b_passed_through", "    hard", """\
    hard = cg.where(x > 0, 1.0, 0.0)
    return x - cg.stop_gradient(x) + hard
"""),
    ("ch14b_history", "    losses", """\
    def one(x):
        with cg.record():
            return cg.square(cg.tanh(x @ w)).mean()

    return [float(one(x)) for x in batches]
"""),
    ("ch15b_join", "    joined", """\
    end = start + size
    before = [s for s in free if s[0] + s[1] == start]
    after = [s for s in free if s[0] == end]
    begin = before[0][0] if before else start
    stop = end + (after[0][1] if after else 0)
    return sorted([s for s in free if s not in before and s not in after] + [(begin, stop - begin)])
"""),
    ("ch16b_batch", "    def fits", """\
    n = 0
    for bit in reversed(range(12)):
        if cg.memory.plan(step, batch(n + 2 ** bit)).peak_bytes <= limit: n += 2 ** bit
    return n
"""),
    ("ch17a_checkpoints", "    def ", """\
    for _ in range(n // k):
        def part(x):
            for _ in range(k): x = f(x)
            return x
        x = cg.checkpoint(part, x)
    return x
"""),
    ("ch18a_offload", "    x = ", """\
    x.requires_grad_()
    scope = cg.memory.offload(folder)
    with cg.record(), scope:
        total = cg.sum(f(x))
    total.backward()
    return x.grad, scope.written_bytes
"""),
    ("ch19a_fused", "    solver", """\
    solver = cg.optim.Sgd(lr=lr)
    solver.set_parameters(weights)
    fused = solver.fuse_into_backward()
    for _ in range(steps):
        with cg.record(): y = loss()
        y.backward()
        solver.update()
    fused.close()
"""),
    ("ch21b_traffic", "    return 4", """\
    elements = reads + writes
    if not past_cache: elements += writes
    return elements * n * 4


def chain(n, k):
    return [12 * n * k, 8 * n]
"""),
    ("ch22a_block", "    fitting", """\
    best = None
    for r in range(1, 33):
        for v in range(1, 33):
            if r * v + v + 1 > registers or r * v < 8: continue
            if best is None or loads(r, v) < loads(*best): best = [r, v]
    return best
"""),
    ("ch23a_patches", "    windows", """\
    c, height, width = x.shape
    columns = [x[:, i:i + k, j:j + k].reshape(-1) for i in range(0, height - k + 1, stride)
               for j in range(0, width - k + 1, stride)]
    return np.stack(columns, 1)
"""),
    ("ch23b_no_patches", "    o, c", """\
    o, c, k, _ = w.shape
    rows, columns = x.shape[1] - k + 1, x.shape[2] - k + 1
    y = 0.0
    for i in range(k):
        for j in range(k):
            y = y + cg.einsum("oc,chw->ohw", w[:, :, i, j], x[:, i:i + rows, j:j + columns])
    return y
"""),
    ("ch24a_online", "    m, total", """\
    m, total, y = None, 0.0, 0.0
    for s, v in parts:
        for one, value in zip(s, v):
            if m is None or one > m:
                c = 0.0 if m is None else np.exp(m - one)
                m, total, y = float(one), total * c, y * c
            total, y = total + np.exp(one - m), y + np.exp(one - m) * value
    return y / total
"""),
    ("ch25a_net", "    net = ", """\
    net = Net("other")
    y = net.tanh(net.matmul(["x", "w"], "product"))
    net.mean(net.mul([y, y]), "loss")
    net.add_gradient_operators(["loss"])
    return net
"""),
    ("ch25b_branch", "    return", "    up = (x.sum() > 0).astype(x.dtype)\n    return x * (0.5 + 1.5 * up)\n"),
    ("ch27a_constant", "    return", "    return x - cg.mean(x, axis=0, keepdims=True)\n"),
    ("ch29b_all_reduce", "    n = ", """\
    n, size = len(arrays), len(arrays[0]) // len(arrays)
    results = [a.copy() for a in arrays]
    for r in range(n):
        here = slice(r * size, (r + 1) * size)
        total = np.zeros(size, arrays[0].dtype)
        for k in range(n):
            total += arrays[k][here] if k == r else send(k, r, arrays[k][here])
        for k in range(n):
            results[k][here] = total if k == r else send(r, k, total)
    return results
"""),
]
