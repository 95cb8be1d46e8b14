"""backward into some variables, grad, and what cannot be reached, contract 4."""

import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import GradientEdge, grad


def variable(*numbers, dtype="float64", req="write"):
    return cg.tensor(list(numbers or (1.0, 2.0)), dtype=dtype).attach_grad(req)


def recorded(f, *args):
    with cg.record():
        return f(*args)


def state(*xs):
    return [(x.grad.tolist(), x.grad.version, x.fresh_grad) for x in xs]


# ---- inputs ----------------------------------------------------------------------------------------------------------

def test_backward_into_some_inputs():
    x, w = variable(), variable()
    with cg.record() as tape:
        y = cg.exp(x) * cg.exp(w)
    y.backward(inputs=[x], retain_graph=True)
    np.testing.assert_allclose(x.grad.numpy(), np.exp([2.0, 4.0]))
    assert w.grad.tolist() == [0.0, 0.0] and not w.fresh_grad
    y.backward(inputs=w)
    np.testing.assert_allclose(w.grad.numpy(), np.exp([2.0, 4.0]))
    assert x.grad.version == 1
    assert tape.saved_bytes == 16                   # x's own exp has not run in the second pass


def test_inputs_refused():
    x = variable()
    y = recorded(lambda: x * x)
    with pytest.raises(RuntimeError, match="inputs is empty; list the variables that are to receive gradients"):
        y.backward(inputs=[])
    for wrong in (cg.zeros(2), recorded(lambda: x * 1), 3.0):
        with pytest.raises(RuntimeError, match="backward: input 1 has no .grad"):
            y.backward(inputs=[x, wrong])
    assert x.grad.tolist() == [0.0, 0.0]
    y.backward(inputs=[x, x])
    assert x.grad.tolist() == [2.0, 4.0]


def test_grad_leaves_every_grad_alone():
    x, w = variable(), variable(req="add")
    with cg.record():
        a = x * w
        y = a * a
    before = state(x, w)
    found = grad(y, [w, a, x])
    assert isinstance(found, tuple) and [g.tolist() for g in found] == [[2.0, 16.0], [2.0, 8.0], [2.0, 16.0]]
    assert state(x, w) == before
    assert isinstance(grad(recorded(lambda: x * 2), x), cg.Tensor)
    assert isinstance(grad(recorded(lambda: x * 2), [x]), tuple)


def test_grad_of_the_same_input_twice():
    x = variable()
    a, b = grad(recorded(lambda: x * x), [x, x])
    assert a.tolist() == b.tolist() == [2.0, 4.0]


def test_grad_where_paths_meet():
    """The nodes that lead to the input are found in any order of paths. g - sum(g) once lost half of its gradient."""
    x, v = variable(), cg.tensor([1.0, 10.0], dtype="float64")
    assert grad(recorded(lambda: x - cg.sum(x)), x, v).tolist() == [-10.0, -1.0]
    assert grad(recorded(lambda: cg.sum(x) - x), x, v).tolist() == [10.0, 1.0]
    with cg.record():
        a = x * 1
        b = cg.exp(a * 0)
        c = (a + b) * b + a * cg.sum(b * a)
    whole = grad(c, x, v, retain_graph=True)
    c.backward(v)
    assert whole.tolist() == x.grad.tolist()


KINDS = [lambda a, b: a * b, lambda a, b: a - b, lambda a, b: cg.tanh(a), lambda a, b: a + cg.sum(b)]


def random_graph(seed, n=12):
    """A graph with random connections between its nodes. Returns its leaves and its output."""
    random = np.random.default_rng(seed)
    leaves = [variable(*random.uniform(-1, 1, 3)) for _ in range(3)]
    with cg.record():
        nodes = list(leaves)
        for _ in range(n):
            a, b = nodes[random.integers(len(nodes))], nodes[random.integers(len(nodes))]
            nodes.append(KINDS[random.integers(4)](a, b))
        return leaves, nodes, sum(nodes[-3:], nodes[0])


@pytest.mark.parametrize("seed", range(40))
def test_partial_passes_agree_with_the_whole(seed):
    """For each subset of the leaves, and for each intermediate, grad returns the gradients of backward."""
    leaves, nodes, y = random_graph(seed)
    y.backward(retain_graph=True)
    wanted = [x.grad.tolist() for x in leaves]
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(3), k) for k in (1, 2, 3)):
        found = grad(y, [leaves[i] for i in chosen], retain_graph=True, allow_unused=True)
        for i, g in zip(chosen, found, strict=True):
            said = 0 * np.array(wanted[i]) if g is None else g.numpy()
            np.testing.assert_allclose(said, wanted[i], rtol=1e-12, atol=1e-13)
    for middle in nodes[3:]:                        # and again through each intermediate
        g = grad(y, middle, retain_graph=True, allow_unused=True)
        by_create_graph = grad(y, middle, create_graph=True, allow_unused=True)
        assert (g is None) == (by_create_graph is None)
        if g is not None:
            np.testing.assert_allclose(g.numpy(), by_create_graph.detach().numpy(), rtol=1e-12, atol=1e-13)


# ---- edges and what cannot be reached --------------------------------------------------------------------------------

def test_gradient_edge():
    x = variable()
    with cg.record():
        a = x * x
        y = a * 3
    edge = GradientEdge(a.grad_fn, 0)
    assert (edge.node, edge.output_nr) == (a.grad_fn, 0)
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
    found = grad(y, [edge, GradientEdge(leaf, 0), GradientEdge(y.grad_fn)])
    assert [g.tolist() for g in found] == [[3.0, 3.0], [6.0, 12.0], [1.0, 1.0]]
    y = recorded(lambda: x * x)
    assert grad(y, GradientEdge(y.grad_fn, 0)).tolist() == [1.0, 1.0]


def test_unreachable_by_position():
    x, other = variable(), variable()
    elsewhere = recorded(lambda: x * 1)
    y = recorded(lambda: x * x)
    edge = GradientEdge(elsewhere.grad_fn)
    for inputs, position in (([other], 0), ([x, other], 1), ([x, x, elsewhere], 2), ([x, edge], 1)):
        with pytest.raises(RuntimeError, match=f"input {position} is not reachable from the outputs; pass allow"):
            grad(y, inputs)
    with pytest.raises(RuntimeError, match=r"grad: input 1, of shape \(2,\), is neither a variable nor a recorded"):
        grad(y, [x, cg.zeros(2)])
    found = grad(y, [other, x, elsewhere, cg.zeros(2)], allow_unused=True)
    assert found[0] is found[2] is found[3] is None and found[1].tolist() == [2.0, 4.0]
    y = recorded(lambda: x * x)
    assert grad(y, other, allow_unused=True) is None


def test_grad_refuses():
    x = variable()
    y = recorded(lambda: x * x)
    with pytest.raises(ValueError, match="grad: got no inputs"):
        grad(y, [])
    with pytest.raises(TypeError, match="grad: input 0 must be a tensor or a GradientEdge, got float"):
        grad(y, [3.0])
    with pytest.raises(TypeError, match="grad takes create_graph, allow_unused and train_mode by keyword only"):
        grad(y, x, None, None, True)
    with pytest.raises(TypeError, match="backward takes train_mode by keyword only"):
        y.backward(None, False, True)
    with pytest.raises(TypeError, match="train_mode must be True, False or None"):
        y.backward(train_mode="yes")
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
