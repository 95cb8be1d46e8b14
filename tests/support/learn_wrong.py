"""Wrong answers that readers give to the exercises: changes of the solutions, and what the check says about them.

A row has the exercise, the mistake, a text of the solution, what the reader has in its place, and a part of the
message.
"""

WRONG = [
    ("ch01a_slope", "the values", "x.grad", "f(x).detach()", "These are the values of f"),
    ("ch01a_slope", "by hand", "    return x.grad", "    return 3 * x.detach() ** 2 - 2", "must work for any f"),
    ("ch01a_slope", "not recorded", "    with cg.record():\n        y = f(x).sum()", "    y = f(x).sum()", "backward"),
    ("ch01b_line", "uphill",
     "a -= rate * a.grad\n"
     "        b -= rate",
     "a += rate * a.grad\n"
     "        b += rate",
     "uphill"),
    ("ch01b_line", "a sum", ".mean()", ".sum()", "the gradient of the sum of the squares"),
    ("ch01b_line", "new names",
     "a -= rate * a.grad\n"
     "        b -= rate * b.grad",
     "c = a - rate * a.grad",
     "have not moved"),
    ("ch01b_line", "new tensors",
     "a -= rate * a.grad\n"
     "        b -= rate * b.grad",
     "a = a - rate * a.grad\n"
     "        b = b - rate * b.grad",
     "no variable any more: `a = a - ...` makes a new"),
    ("ch01b_line", "one new tensor", "a -= rate * a.grad", "a = a - rate * a.grad", "is no variable any more"),
    ("ch01c_differences", "one side", "(f(x + h) - f(x - h)) / (2 * h)", "(f(x + h) - f(x)) / h", "from x to x + h"),
    ("ch01c_differences", "half of the distance", "/ (2 * h)", "/ h", "2 h apart"),
    ("ch01c_differences", "no absolute value", "abs(found - gradient)", "found - gradient", "absolute value"),
    ("ch01c_differences", "a fixed bound", " * max(1.0, abs(gradient))", "", "larger"),
    ("ch02a_accuracy", "a count", ".mean().item()", ".sum().item()", "the number of images that are right"),
    ("ch02a_accuracy", "a tensor", ".mean().item()", ".mean()", "a float is right"),
    ("ch02b_epoch", "the last batch", "len(images), size", "len(images) - size + 1, size", "it is left out"),
    ("ch02b_epoch", "no zero_grad",
     "        solver.zero_grad()\n", "", "the gradients of the batches before are added"),
    ("ch02b_epoch", "tensors", "losses.append(loss.item())", "losses.append(loss)", "keeps its graph alive"),
    ("ch03a_resume", "only the model",
     '    solver.load_states(folder / "solver.safetensors")\n', "", "Restore the solver"),
    ("ch03a_resume", "loads nothing",
     '    model.load_state_dict(cg.load(folder / "model.safetensors"))\n', "", "load_state_dict"),
    ("ch03b_deploy", "no weights", ", weights=True", "", "Save with `weights=True`"),
    ("ch04a_first_bad", "only NaN", "cg.isfinite(x)", "(~cg.isnan(x))", "infinities as well as NaN"),
    ("ch04a_first_bad", "the last one",
     "            return k\n"
     "    return -1",
     "            bad = len(layers) - 1\n"
     "    return bad",
     "Return as soon as a result is bad"),
    ("ch04b_lost_gradient", "detached",
     "cg.sqrt((w * w).sum())", "cg.sqrt((w * w).sum()).detach()", "a constant for backward"),
    ("ch04b_lost_gradient", "another value", "cg.sqrt((w * w).sum())", "(w * w).sum()", "the value must stay"),
    ("ch04c_overflow", "no x", "cg.relu(x) + ", "", "larger by x"),
    ("ch04c_overflow", "the large exponent", "cg.relu(x) + cg.log1p(cg.exp(-abs(x)))", "cg.log1p(cg.exp(x))",
     "No exponent may be large"),
    ("ch04c_overflow", "rounded", "cg.log1p(cg.exp(-abs(x)))", "cg.log(1.0 + cg.exp(-abs(x)))", "without rounding"),
    ("ch04c_overflow", "both ways", "cg.relu(x) + cg.log1p(cg.exp(-abs(x)))",
     "cg.where(x > 0, x + cg.log1p(cg.exp(-x)), cg.log1p(cg.exp(x)))", "0 times infinity"),
    ("ch04d_shapes", "a sum", ".mean()", ".sum()", "This is the sum"),
    ("ch04d_shapes", "still broadcast",
     "predictions[:, 0] - targets", "predictions - targets[None]", "all 9 differences"),
    ("ch05a_exponential", "derivative 1", "((s, e),)", "((s, 1.0),)", "That of e^s is e^s"),
    ("ch05a_exponential", "a number", "Scalar(e, ((s, e),))", "e", "a number has no parents"),
    ("ch05a_exponential", "no parents", "Scalar(e, ((s, e),))", "Scalar(e)", "one is right: the pair"),
    ("ch05b_backward", "no sum", "parent.grad += ", "parent.grad = ", "`+=` in place of `=`"),
    ("ch05b_backward", "the first first", "-node.order", "node.order", "is right"),
    ("ch05b_backward", "as found",
     "sorted(found, key=lambda node: -node.order)", "[self, *(found - {self})][:1]", "is right"),
    ("ch05b_backward", "a queue",
     "        for node in sorted(found, key=lambda node: -node.order):\n"
     "            for parent, derivative in node.parents:\n"
     "                parent.grad += node.grad * derivative\n",
     "        todo, seen = [self], {self}\n"
     "        while todo:\n"
     "            node = todo.pop(0)\n"
     "            for parent, derivative in node.parents:\n"
     "                parent.grad += node.grad * derivative\n"
     "                if parent not in seen:\n"
     "                    seen.add(parent)\n"
     "                    todo.append(parent)\n",
     "is 8, but 16 is right. b gets contributions from z and from c"),
    ("ch05b_backward", "a stack",
     "        for node in sorted(found, key=lambda node: -node.order):\n"
     "            for parent, derivative in node.parents:\n"
     "                parent.grad += node.grad * derivative\n",
     "        todo, seen = [self], {self}\n"
     "        while todo:\n"
     "            node = todo.pop()\n"
     "            for parent, derivative in node.parents:\n"
     "                parent.grad += node.grad * derivative\n"
     "                if parent not in seen:\n"
     "                    seen.add(parent)\n"
     "                    todo.append(parent)\n",
     "before all contributions to it had arrived"),
    ("ch05b_backward", "a call for each path",
     "        for node in sorted(found, key=lambda node: -node.order):\n"
     "            for parent, derivative in node.parents:\n"
     "                parent.grad += node.grad * derivative\n",
     "\n"
     "        def walk(node, g):\n"
     "            for parent, derivative in node.parents:\n"
     "                parent.grad += g * derivative\n"
     "                walk(parent, g * derivative)\n"
     "\n"
     "        walk(self, 1.0)\n",
     "visit each number once"),
    ("ch06a_unbroadcast", "no axes in front",
     "    g = g.sum(axis=tuple(range(g.ndim - len(shape))))\n", "",
     "The gradient of b has shape (4, 3), but b has shape (3,): sum over the axes"),
    ("ch06a_unbroadcast", "no axes of size 1",
     "g.sum(axis=ones, keepdims=True)", "g",
     "The gradient of b has shape (4, 3), but b has shape (4, 1): sum over axis 1 of b, which has the size 1"),
    ("ch06a_unbroadcast", "no keepdims", ", keepdims=True", "", "keepdims=True"),
    ("ch06a_unbroadcast", "always the first axis",
     "    g = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
     "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
     "    return g.sum(axis=ones, keepdims=True)\n",
     "    return g.sum(axis=0)\n",
     "shape (3,), but b has shape (4, 3): nothing was repeated in g, (4, 3), so it is returned as it is"),
    ("ch06a_unbroadcast", "always all axes",
     "    g = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
     "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
     "    return g.sum(axis=ones, keepdims=True)\n",
     "    return g.sum()\n",
     "shape (), but b has shape (4, 3): nothing was repeated in g, (4, 3), so it is returned as it is"),
    ("ch06a_unbroadcast", "all axes if any",
     "    g = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
     "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
     "    return g.sum(axis=ones, keepdims=True)\n",
     "    return g if g.shape == shape else g.sum()\n",
     "shape (), but b has shape (3,): sum only over the axes in front"),
    ("ch06a_unbroadcast", "a loop",
     "    g = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
     "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
     "    return g.sum(axis=ones, keepdims=True)\n",
     "    for _ in range(5000):\n"
     "        if g.shape == shape: return g\n"
     "        g = g.sum(axis=0)\n",
     "From g of shape (4, 3) to shape (4, 1), the sum was called 1000 times, at last for an array of shape ()"),
    ("ch06a_unbroadcast", "a loop of np.sum",
     "    g = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
     "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
     "    return g.sum(axis=ones, keepdims=True)\n",
     "    for _ in range(5000):\n"
     "        if g.shape == shape: return g\n"
     "        g = np.sum(g, axis=0)\n",
     "From g of shape (4, 3) to shape (4, 1), the sum was called 1000 times, at last for an array of shape ()"),
    ("ch06a_unbroadcast", "a mean", "g = g.sum(", "g = g.mean(", "Each use contributes to the sum"),
    ("ch06b_product", "swapped", "g @ w.T, x.T @ g", "x.T @ g, g @ w.T", "have changed places"),
    ("ch06b_product", "one of them", "g @ w.T, x.T @ g", "g @ w.T", "but the pair of the gradients"),
    ("ch06b_product", "averaged", "x.T @ g", "x.T @ g / len(x)", "Nothing is averaged"),
    ("ch07a_residual", "not around", "return x + self.inner(x)", "return self.inner(x)", "x itself is missing"),
    ("ch07a_residual", "in a list", "self.inner = inner", "self.all = [inner]", "it is found there"),
    ("ch07b_tower", "a plain list",
     "nn.ModuleList(nn.Linear(width, width) for _ in range(n))", "[nn.Linear(width, width) for _ in range(n)]",
     "nn.ModuleList"),
    ("ch07b_tower", "one layer",
     "nn.Linear(width, width) for _ in range(n))", "[nn.Linear(width, width)] * n)", "it counts once"),
    ("ch07b_tower", "no tanh", "cg.tanh(layer(x))", "layer(x)", "followed by a tanh"),
    ("ch08a_momentum", "a new v",
     "    v *= factor\n"
     "    v += lr * g\n",
     "    v = factor * v + lr * g\n",
     "v has not changed"),
    ("ch08a_momentum", "a new w", "w -= v", "w = w - v", "w has not changed"),
    ("ch08a_momentum", "the old v",
     "    v *= factor\n"
     "    v += lr * g\n"
     "    w -= v",
     "    w -= v\n"
     "    v *= factor\n"
     "    v += lr * g",
     "First v, then w"),
    ("ch08a_momentum", "no rate", "lr * g", "g", "The rate belongs to the gradient"),
    ("ch08b_parts", "not divided",
     " / parts\n", "\n", "too large by the number of parts"),
    ("ch08b_parts", "overwritten", ".requires_grad_()", ".attach_grad()", "each overwrites"),
    ("ch08b_parts", "at once", "for part in cg.split(x, parts):", "for part in [x] * parts:", "A pass had 12 rows"),
    ("ch08c_adam", "not corrected",
     "(m / (1 - beta1 ** t)) / (v / (1 - beta2 ** t)) ** 0.5", "m / v ** 0.5", "m and v are not corrected"),
    ("ch08c_adam", "uphill", "w -= ", "w += ", "uphill"),
    ("ch09a_direction", "the results", "return tangent", "return _", "These are the results of f"),
    ("ch09a_direction", "reverse mode",
     "    _, tangent = cg.func.jvp(f, (x,), (v,))\n"
     "    return tangent",
     "    return cg.stack([(cg.func.grad(lambda x, i=i: f(x)[i])(x) * v).sum() for i in range(f(x).shape[0])])",
     "In forward mode one call is enough"),
    ("ch09b_each_sample", "the sum",
     "return cg.sqrt(cg.square(each).sum(1))", "return cg.sqrt(cg.square(each.sum(0)).sum())", "is right"),
    ("ch09b_each_sample", "the wrong axis", ".sum(1)", ".sum(0)", "is right"),
    ("ch09b_each_sample", "no root",
     "cg.sqrt(cg.square(each).sum(1))", "cg.square(each).sum(1)", "The root is missing"),
    ("ch10a_attention", "no mask",
     "cg.where(i[:, None] >= i, scores, -math.inf)", "scores", "Each step sees all others"),
    ("ch10a_attention", "no scale", " / math.sqrt(q.shape[-1])", "", "not divided by the root"),
    ("ch10a_attention", "the wrong axis", "-math.inf))", "-math.inf), 0)", "over the queries"),
    ("ch10b_cached", "no cache", "rows = [cache[name]] if name in cache else []", "rows = []", "sees only itself"),
    ("ch10b_cached", "queries too", '(("k", k), ("v", v))', '(("k", k), ("v", v), ("q", q))', "Earlier queries"),
    ("ch11a_strides", "columns first", "tuple(reversed(found))", "tuple(found)", "is right"),
    ("ch11a_strides", "bytes", "found, step = [], 1", "found, step = [], 4", "These are bytes"),
    ("ch11b_keep", "a slice", ".copy()", "[:]", "A view holds the whole buffer"),
    ("ch12a_predict", "relu keeps all", '"relu": 125', '"relu": 4000', "one bit for each"),
    ("ch12a_predict", "bytes of the addition",
     '"exp plus 1": 4000', '"exp plus 1": 8000', "The addition needs no values"),
    ("ch12b_names", "another name",
     "    for _ in range(4):\n"
     "        y = y * 1.5",
     "    z = y * 1.5\n"
     "    y = z * 1.5\n"
     "    z2 = y * 1.5\n"
     "    y = z2 * 1.5",
     "use one name for the chain"),
    ("ch13a_predict", "no_grad", "cg.pause()", "cg.no_grad()", "`cg.no_grad()` does not"),
    ("ch13a_predict", "predict_mode", "cg.pause()", "cg.predict_mode()", "`cg.predict_mode()` does not"),
    ("ch13b_passed_through", "nothing passes",
     "x + cg.stop_gradient(hard - x)", "hard + 0 * x", "whose derivative is 0"),
    ("ch13b_passed_through", "the identity", "x + cg.stop_gradient(hard - x)", "x * 1.0", "the identity in forward"),
    ("ch13b_passed_through", "no graph", "x + cg.stop_gradient(hard - x)", "hard", "has no graph"),
    ("ch14a_largest", "the first row",
     "    found = {}\n"
     "    for row in p.at_peak():\n"
     '        if row.operation != "before":\n'
     "            found[row.operation] = found.get(row.operation, 0) + row.bytes\n"
     "    return max(found.items(), key=lambda item: item[1])",
     "    row = max((r for r in p.at_peak() if r.operation != 'before'), key=lambda r: r.bytes)\n"
     "    return row.operation, row.bytes",
     "add them"),
    ("ch14b_history", "detached", "loss.item()", "loss.detach()", "Append `loss.item()`"),
    ("ch14b_history", "with the graph", "loss.item()", "loss * 1.0", "keeps its graph"),
    ("ch15a_best_fit", "the first fit", "min(fitting)[1]", "fitting[0][1]", "This is the first span with room"),
    ("ch15a_best_fit", "the worst fit", "min(fitting)[1]", "max(fitting)[1]", "the largest span"),
    ("ch15a_best_fit", "an empty rest", " if start != at or size > nbytes]", "]", "A span of 0 bytes is none"),
    ("ch15b_join", "not joined", "if joined and sum(joined[-1]) == a:", "if False:", "nothing was joined"),
    ("ch15b_join", "only before",
     "    joined = []\n"
     "    for a, n in sorted([*free, (start, size)]):\n"
     "        if joined and sum(joined[-1]) == a:",
     "    joined = []\n"
     "    for a, n in sorted([*free, (start, size)]):\n"
     "        if a == start and joined and sum(joined[-1]) == a:",
     "ends where a free one begins"),
    ("ch16a_count", "no biases", "4 * (n * m + m)", "4 * n * m", "The biases are missing"),
    ("ch16a_count", "one state", "2 * parameters", "parameters", "Adam has two states"),
    ("ch16a_count", "no batch", "sum(widths[:-1])", "sum(widths[1:-1])", "The first layer saves its input too"),
    ("ch16a_count", "the result too", "sum(widths[:-1])", "sum(widths)", "saved by nothing"),
    ("ch16b_batch", "below the limit", ".peak_bytes <= limit", ".peak_bytes < limit", "One row more fits"),
    ("ch16b_batch", "one too many", "    return low", "    return high", "the peak is above the limit"),
    ("ch16b_batch", "run", "cg.memory.plan(step, batch(n)).peak_bytes <= limit",
     "step(batch(n)) or cg.memory.plan(step, batch(n)).peak_bytes <= limit", "The step was run"),
    ("ch16b_batch", "one after the other", "low, high = high, 2 * high", "low, high = high, 1 + high", "Double n"),
    ("ch17a_checkpoints", "none", "cg.checkpoint(part, x)", "part(x)", "Nothing goes through cg.checkpoint"),
    ("ch17a_checkpoints", "one for each call",
     "    def part(x):\n"
     "        for _ in range(k):\n"
     "            x = f(x)\n"
     "        return x\n"
     "\n"
     "    for _ in range(n // k):\n"
     "        x = cg.checkpoint(part, x)",
     "    for _ in range(n):\n"
     "        x = cg.checkpoint(f, x)",
     "once for each group"),
    ("ch17b_distance", "k computed", "+ k - 1", "+ k", "k - 1 are computed again"),
    ("ch17b_distance", "rounded down", "-(-n // k)", "n // k", "rounded up"),
    ("ch18a_offload", "no gradient", "return x.grad, ", "return x, ", "to the bit"),
    ("ch18a_offload", "outside",
     "    with cg.memory.offload(folder) as o:\n"
     "        with cg.record():\n"
     "            y = f(x).sum()",
     "    with cg.memory.offload(folder) as o:\n"
     "        pass\n"
     "    with cg.record():\n"
     "        y = f(x).sum()",
     "f must run inside"),
    ("ch19a_fused", "stored",
     "    with solver.fuse_into_backward():\n"
     "        for _ in range(steps):\n"
     "            with cg.record():\n"
     "                y = loss()\n"
     "            y.backward()",
     "    for _ in range(steps):\n"
     "        with cg.record():\n"
     "            y = loss()\n"
     "        y.backward()\n"
     "        solver.update()",
     "they were all stored"),
    ("ch19a_fused", "no solver",
     "    with solver.fuse_into_backward():\n"
     "        for",
     "    if True:\n"
     "        for",
     "The weight has not moved"),
    ("ch19b_passes", "no accumulate", "        with fused.accumulate():", "        if True:", "a step of its own"),
    ("ch19b_passes", "no update",
     "    with solver.fuse_into_backward() as fused:\n"
     "        with fused.accumulate():\n"
     "            for loss in losses:\n"
     "                with cg.record():\n"
     "                    y = loss()\n"
     "                y.backward()\n"
     "        solver.update()\n",
     "    fused = solver.fuse_into_backward()\n"
     "    with fused.accumulate():\n"
     "        for loss in losses:\n"
     "            with cg.record(): y = loss()\n"
     "            y.backward()\n",
     "call solver.update()"),
    ("ch19b_passes", "stored",
     "    with solver.fuse_into_backward() as fused:\n"
     "        with fused.accumulate():\n",
     "    for w in weights: w.attach_grad('add')\n"
     "    if True:\n"
     "        if True:\n",
     "were stored as well"),
    ("ch19b_passes", "overwritten",
     "    with solver.fuse_into_backward() as fused:\n"
     "        with fused.accumulate():\n",
     "    if True:\n"
     "        if True:\n",
     "Only the last pass counts"),
    ("ch20a_soft_sign", "no g", "g * cg.square", "cg.square", "The factor g is missing"),
    ("ch20a_soft_sign", "x and y",
     "(y)\n"
     "        return y\n"
     "\n"
     "    @staticmethod\n"
     "    def backward(ctx, g):\n"
     "        (y,) =",
     "(y, x)\n"
     "        return y\n"
     "\n"
     "    @staticmethod\n"
     "    def backward(ctx, g):\n"
     "        (y, _) =",
     "Two arrays are saved"),
    ("ch20a_soft_sign", "not saved",
     "ctx.save_for_backward(y)\n"
     "        return y\n"
     "\n"
     "    @staticmethod\n"
     "    def backward(ctx, g):\n"
     "        (y,) = ctx.saved_tensors",
     "ctx.y = y\n"
     "        return y\n"
     "\n"
     "    @staticmethod\n"
     "    def backward(ctx, g):\n"
     "        y = ctx.y",
     "can neither count nor free it"),
    ("ch20a_soft_sign", "one name for two",
     "(y)\n", "(y, x)\n", "line 21, in backward: (y,) = ctx.saved_tensors"),
    ("ch20a_soft_sign", "no square", "cg.square(1.0 - abs(y))", "(1.0 - abs(y))", "The square is missing"),
    ("ch20b_checked", "only g", "g * 3 * x * abs(x)", "g * 3 * x * x", "the derivative is negative there"),
    ("ch20b_checked", "only the sign", "g * 3 * x * abs(x)", "3 * x * abs(x)", "The factor g is missing"),
    ("ch21a_rounder", "float64", "np.float32(1.5 * 2 ** 23)", "np.float64(1.5 * 2 ** 23)", "use np.float32"),
    ("ch21a_rounder", "too small", "1.5 * 2 ** 23", "1.5", "Nothing was rounded"),
    ("ch21a_rounder", "half up",
     "    constant = np.float32(1.5 * 2 ** 23)\n"
     "    return (x + constant) - constant",
     "    return np.floor(x + np.float32(0.5))",
     "Halves must go to the even number"),
    ("ch21b_traffic", "elements", "4 * n *", "n *", "A float32 has four bytes"),
    ("ch21b_traffic", "past the cache", "(1 if past_cache else 2)", "1", "also reads the line"),
    ("ch21b_traffic", "k stores", "traffic(n, 1, 1, True)", "k * traffic(n, 1, 1, True)", "whatever k is"),
    ("ch22a_block", "too large", "r * v + v + 1 <= registers", "r * v <= registers", "which needs"),
    ("ch22a_block", "few sums", "r * v >= 8 and r * v + v + 1 <= registers", "r * v < 8", "Eight must be independent"),
    ("ch22a_block", "upside down", "(r + v) / (r * v)", "(r * v) / (r + v)", "not the other way round"),
    ("ch22b_sets", "lines", "i * pitch // 64 % 64 for", "i * pitch // 64 for", "take the remainder"),
    ("ch22b_sets", "rows", "len({i * pitch // 64 % 64 for i in range(rows)})", "rows", "This is the number of rows"),
    ("ch22b_sets", "no padding", "    while sets(pitch, rows) < min(rows, 64):\n        pitch += 64\n", "",
     "are possible"),
    ("ch22b_sets", "always a line more", "-(-nbytes // 64) * 64", "(nbytes // 64 + 1) * 64", "A smaller pitch"),
    ("ch22b_sets", "not rounded", "-(-nbytes // 64) * 64", "nbytes", "no multiple of 64"),
    ("ch23a_patches", "transposed",
     ".reshape(x.shape[0] * k * k, -1)", ".reshape(x.shape[0] * k * k, -1).T", "is right"),
    ("ch23a_patches", "no stride", "[:, ::stride, ::stride]", "", "has shape"),
    ("ch23b_no_patches", "unfolded",
     "    y = cg.zeros((o, rows * columns), x.dtype)\n"
     "    for i in range(k):\n"
     "        for j in range(k):\n"
     "            y += w[:, :, i, j] @ x[:, i:i + rows, j:j + columns].reshape(c, -1)\n",
     "    y = w.reshape(o, -1) @ cg.unfold(x[None], k)[0]\n",
     "The matrix of patches would have"),
    ("ch23b_no_patches", "reversed", "w[:, :, i, j]", "w[:, :, k - 1 - i, k - 1 - j]", "The kernel is reversed"),
    ("ch24a_online", "not scaled",
     "total * c + e.sum(), y * c + e @ v", "total + e.sum(), y + e @ v", "multiply the old sums"),
    ("ch24a_online", "overflow", "top = max(m, s.max())", "top = 0.0 * s.max()", "Subtract the maximum so far"),
    ("ch24a_online", "not divided", "return y / total", "return y", "Divide by the sum of the weights"),
    ("ch24b_halves", "not scaled",
     "a * first[1] + b * second[1]", "first[1] + second[1]", "Scale both to the larger one"),
    ("ch24b_halves", "divided",
     "a * first[2] + b * second[2]", "(a * first[2] + b * second[2]) / (a * first[1] + b * second[1])",
     "not yet divided by l"),
    ("ch25a_net", "a sum", "net.mean(", "net.sum(", "This is the sum"),
    ("ch25a_net", "no gradients", '    net.add_gradient_operators(["loss"])\n', "", "call `net.add_gradient_operators"),
    ("ch25a_net", "no name", ', "loss")\n    net.add_gradient_operators(["loss"])', ")", "names its result"),
    ("ch25b_branch", "each element", "x.sum() > 0", "x > 0", "The condition is the sum"),
    ("ch25b_branch", "a number", "x.sum() > 0", "x.sum().item() > 0", "cannot be captured"),
    ("ch26a_bound", "all", " if first <= step <= last)", ")", "This is the sum of all buffers"),
    ("ch26a_bound", "not the last step", "step <= last", "step < last", "A buffer is alive in its last step"),
    ("ch26b_places", "on top", "low = max(low, end)", "low = end + 0 * low", "overlap"),
    ("ch26b_places", "no gaps",
     "            if begin - low >= n:\n"
     "                break\n",
     "",
     "Look into the gaps"),
    ("ch26b_places", "lives ignored", "if lives[k][1] <= last and first <= lives[k][2])", ")", "is the lowest offset"),
    ("ch27a_constant", "all columns", "x.mean(0)", "x.mean()", "one mean for all columns"),
    ("ch27a_constant", "the size again", "x.mean(0)", "x.sum(0) * (1.0 / len(x))", "It divides by 4"),
    ("ch27b_replay", "eager",
     "    net, workspace, losses = Net.capture(step, x, t), Workspace(), []\n"
     "    workspace.feed(net.inputs[0], x)\n"
     "    workspace.feed(net.inputs[1], t)\n"
     "    for _ in range(steps):\n"
     "        workspace.run(net)\n"
     "        losses.append(workspace.fetch(net.outputs[0]).item())\n"
     "    return losses",
     "    return [step(x, t).item() for _ in range(steps)]",
     "Each step has called the model"),
    ("ch27b_replay", "no update", "        solver.update()\n", "", "The loss does not fall"),
    ("ch28a_two_ways", "the other way",
     "then=double, otherwise=square", "then=square, otherwise=double", "The other way ran"),
    ("ch28a_two_ways", "where",
     '    net.add_operator("If", ["positive", "x"], "y", then=double, otherwise=square)\n',
     '    net.where(["positive", net.mul(["x", 2.0]), net.square("x")], "y")\n', "would compute both ways"),
    ("ch28b_loop", "one turn less", "goes.less_equal", "goes.less", "The last factor is missing"),
    ("ch28b_loop", "from zero", '[1, 1, "n"]', '[0, 1, "n"]', "Begin with 1"),
    ("ch29a_mean", "not weighted",
     "sum(m * n for m, n in zip(means, rows, strict=True)) / sum(rows)", "sum(means) / len(means)",
     "the mean of the means"),
    ("ch29a_mean", "not divided", " / sum(rows)", "", "Divide by their number"),
    ("ch29b_all_reduce", "nothing sent",
     "    n = len(arrays)\n",
     "    return [sum(arrays[1:], arrays[0])] * len(arrays)\n"
     "    n = len(arrays)\n",
     "Nothing was sent"),
    ("ch29b_all_reduce", "all to all",
     "    n = len(arrays)\n",
     "    n = len(arrays)\n"
     "    got = [[arrays[k] if k == r else send(k, r, arrays[k]) for k in range(n)] for r in range(n)]\n"
     "    return [sum(g[1:], g[0]) for g in got]\n",
     "a part of 1 / n"),
    ("ch29b_all_reduce", "a mean", "sums.append(total)", "sums.append(total / n)", "This is the mean"),
]
