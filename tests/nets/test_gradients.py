"""Gradients of nets: heads, skip, sums of branches, versions, and gradients that do not exist."""

import numpy as np
import pytest
from net_runs import run, scaled
from rows import both_dtypes, same_bits

import cygrad as cg
from cygrad.graph import GradientSlice, Net, Workspace

X = np.array([0.5, -1.0, 2.0])
W = np.arange(12.0).reshape(4, 3)


def eager(f, *arrays, head=None):
    """The gradients of f for its arguments."""
    xs = [cg.tensor(a).requires_grad_() for a in arrays]
    with cg.record(): y = f(*xs)
    found = cg.autograd.grad(y, xs, None if head is None else cg.tensor(head), allow_unused=True)
    return [None if g is None else g.numpy() for g in found]


# ---- heads -----------------------------------------------------------------------------------------------------------

def test_heads_of_ones_and_given_heads():
    w = X[::-1].copy()
    ones, given = scaled(), scaled()
    found = ones.add_gradient_operators(["z"])
    assert found == {"z": "z_autogen_grad", "y": "y_grad", "x": "x_grad", "w": "w_grad"} == ones.gradients
    assert list(ones.param_to_grad) == ["x", "w"] and ones.param_to_grad["x"] == "x_grad"
    for a, b in zip(run(ones, "x_grad", "w_grad", x=X, w=w), eager(lambda x, w: cg.exp(x * w), X, w), strict=True):
        same_bits(a, b)
    given.neg("h", "head")
    found = given.add_gradient_operators({"z": "head"})
    assert found["z"] == "head"
    wanted = eager(lambda x, w: cg.exp(x * w), X, w, head=-X)
    for a, b in zip(run(given, "x_grad", "w_grad", x=X, w=w, h=X), wanted, strict=True): same_bits(a, b)


def test_the_head_of_an_intermediate_is_added_to_what_flows_into_it():
    """Defect 2 of Caffe2: such a head was lost."""
    for ys, more in (({"z": None, "y": None}, 1.0), ({"z": None, "y": "head"}, X), (["y", "z"], 1.0)):
        net = scaled()
        if more is X: net.copy("h", "head")
        found = net.add_gradient_operators(ys)
        blobs = {"h": X} if more is X else {}
        y = run(net, found["y"], x=X, w=X, **blobs)
        np.testing.assert_allclose(y, np.exp(X * X) + more, rtol=1e-15)


def test_unknown_blobs_are_errors_and_change_nothing():
    """Defect 3 of Caffe2: a typo in ys was accepted."""
    for ys in (["zz"], {"zz": "z"}, {"zz": None}):
        net = scaled()
        before = net.text(), net.edits
        with pytest.raises(ValueError, match="there is no blob 'zz'; the blobs are w, x, y, z"):
            net.add_gradient_operators(ys)
        assert (net.text(), net.edits) == before


@pytest.mark.parametrize("ys", ["z", ("z",), 3, None, {"z"}, ["z", 3], {"z": 3}, {3: "z"},
                                {"z": GradientSlice("i", "v")}])
def test_other_types_of_ys_are_type_errors(ys):
    net = scaled()
    with pytest.raises(TypeError): net.add_gradient_operators(ys)
    assert len(net) == 2


def test_no_heads_and_repeated_heads():
    net = scaled()
    assert net.add_gradient_operators([]) == {} and len(net) == 2 and net.param_to_grad == {}
    assert scaled().add_gradient_operators({}) == {}
    twice, once = scaled(), scaled()
    assert twice.add_gradient_operators(["z", "z"]) == once.add_gradient_operators(["z"])
    assert twice.operators == once.operators
    empty = Net()
    assert empty.add_gradient_operators([]) == {}


def test_the_head_can_be_an_input():
    net = scaled()
    found = net.add_gradient_operators(["x", "z"])
    np.testing.assert_allclose(run(net, found["x"], x=X, w=X), np.exp(X * X) * X + 1, rtol=1e-15)
    alone = Net()
    alone.relu("x", "y")
    assert alone.add_gradient_operators(["x"]) == {"x": "x_autogen_grad"}
    assert run(alone, "x_autogen_grad", x=X).tolist() == [1, 1, 1]


def test_a_head_that_depends_on_nothing():
    net = scaled()
    net.add_constant(X, "c")
    net.neg("c", "d")
    found = net.add_gradient_operators(["d"])
    assert "x" not in found and "c" not in found
    workspace = Workspace()
    for name in ("x", "w"): workspace.feed(name, X)
    workspace.run(net)
    assert "x_grad" not in workspace and (workspace.fetch("d").numpy() == -X).all()


def test_a_head_gradient_of_another_shape_or_dtype():
    net = scaled()
    net.copy("h", "head")
    net.add_gradient_operators({"z": "head"})
    for h, got in ((np.ones(2), r"a float64 tensor of shape \(2,\)"), (X.astype("float32"), "a float32 tensor")):
        with pytest.raises(ValueError, match=rf"the head gradient 'head' of 'z' must be float64 \(3,\), got {got}"):
            run(net, x=X, w=X, h=h)
    with pytest.raises(ValueError, match="the head gradient 'head' of 'z'"): net.plan({"x": 3, "w": 3, "h": 4})


def test_an_integer_head_is_an_error():
    net = Net()
    net.argmax("x", "i")
    net.add_gradient_operators(["i"])
    with pytest.raises(TypeError, match="the head 'i' is int64, which has no gradient"): run(net, x=X)


# ---- skip, second calls ----------------------------------------------------------------------------------------------

def test_skip_makes_inputs_of_what_the_first_operators_write():
    net = scaled()
    found = net.add_gradient_operators(["z"], skip=1)
    assert found == {"z": "z_autogen_grad", "y": "y_grad"}
    np.testing.assert_array_equal(run(net, "y_grad", x=X, w=X), np.exp(X * X))
    every = scaled()
    assert every.add_gradient_operators(["z"], skip=9) == {"z": "z_autogen_grad"}


def test_a_negative_skip_is_an_error():
    """Defect 7 of Caffe2: a negative skip was a slice from the end."""
    for skip, error in ((-1, ValueError), (1.0, TypeError), (True, TypeError)):
        net = scaled()
        with pytest.raises(error, match="skip must be"): net.add_gradient_operators(["z"], skip=skip)
        assert len(net) == 2


def test_a_second_call_is_an_error():
    """Defect 9 of Caffe2: it added the operators again."""
    net = scaled()
    with pytest.raises(RuntimeError, match="has no gradient operators; call add_gradient_operators"):
        _ = net.gradients
    with pytest.raises(RuntimeError): _ = net.param_to_grad
    net.add_gradient_operators(["z"])
    n = len(net)
    with pytest.raises(RuntimeError, match=r"has gradient operators already; differentiate again on clone\(\)"):
        net.add_gradient_operators(["z"])
    assert len(net) == n


# ---- branches --------------------------------------------------------------------------------------------------------

@both_dtypes
@pytest.mark.parametrize("branches", [2, 3, 5])
def test_branches_are_summed_for_every_floating_dtype(dtype, branches):
    """Defect 1 of Caffe2: sums were for float alone."""
    net = Net()
    parts = [net.power(["x", float(k + 1)]) for k in range(branches)]
    total = parts[0]
    for part in parts[1:]: total = net.add([total, part])
    found = net.add_gradient_operators([total])

    def f(x):
        ys = [cg.power(x, float(k + 1)) for k in range(branches)]
        y = ys[0]
        for part in ys[1:]: y = y + part
        return y

    x = X.astype(dtype)
    same_bits(run(net, found["x"], x=x), eager(f, x)[0])


def test_gradients_that_pass_through_do_not_share_memory():
    """Defect 5 of Caffe2: the gradient of both inputs of an addition was one blob."""
    net = Net()
    net.add(["a", "b"], "c")
    found = net.add_gradient_operators(["c"])
    assert len({*found.values()}) == 3
    net.mul([found["a"], 2.0], found["a"])
    assert [g.tolist() for g in run(net, found["a"], found["b"], a=X, b=X)] == [[2, 2, 2], [1, 1, 1]]


def test_sparse_gradients():
    net = Net()
    net.embedding(["i", "w"], "e", sparse=True)
    found = net.add_gradient_operators(["e"])
    assert found["w"] == GradientSlice("w_grad_indices", "w_grad_values") == net.param_to_grad["w"]
    indices, values = run(net, *found["w"], i=[1, 2, 1], w=W)
    assert indices.tolist() == [1, 2, 1] and values.tolist() == [[1, 1, 1]] * 3


def test_sparse_branches_are_concatenated():
    net = Net()
    e = [net.embedding([i, "w"], sparse=True) for i in ("i", "j")]
    found = net.add_gradient_operators([net.sum(net.add([net.mul([e[0], 2.0]), e[1]]))])
    assert isinstance(found["w"], GradientSlice)
    indices, values = run(net, *found["w"], i=[1, 2], j=[0, 2], w=W)
    dense = np.zeros((4, 3))
    np.add.at(dense, indices, values)
    assert dense.tolist() == [[1, 1, 1], [2, 2, 2], [3, 3, 3], [0, 0, 0]]


@pytest.mark.parametrize("order", ["sparse first", "dense first"])
def test_sparse_and_dense_branches_are_added(order):
    """Defect 1 of Caffe2, and facebookarchive/caffe2#1891: a mixture was refused."""
    net = Net()
    if order == "dense first": net.sum("w", "t")
    net.sum(net.embedding(["i", "w"], sparse=True), "s")
    if order == "sparse first": net.sum("w", "t")
    found = net.add_gradient_operators([net.add(["s", "t"])])
    assert isinstance(found["w"], str)
    assert run(net, found["w"], i=[1, 1], w=W).tolist() == [[1, 1, 1], [3, 3, 3], [1, 1, 1], [1, 1, 1]]


def test_ensure_dense():
    for name in ("ensure_dense", "EnsureDense"):
        net = Net()
        net.add_operator(name, "w", "d")
        net.embedding(["i", "d"], "e", sparse=True)
        found = net.add_gradient_operators(["e"])
        assert run(net, found["w"], i=[1, 1], w=W).tolist() == [[0, 0, 0], [2, 2, 2], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(("op", "rows"), [("sum", [[1, 1, 1], [3, 3, 3]]), ("mean", [[1, 1, 1], [1.5, 1.5, 1.5]])])
def test_deduplicated_rows(op, rows):
    """Two branches read row 1, once and twice, with heads of 1 and 2."""
    net = Net()
    e = [net.embedding([i, "w"], sparse=True) for i in ("i", "j")]
    net.concat([e[0], net.mul([e[1], 1.0])], "y", axis=0)
    net.copy("h", "head")
    g = net.deduplicate(net.add_gradient_operators({"y": "head"})["w"], op)
    values = {"i": [3, 0], "j": [3], "w": W, "h": np.array([[2.0, 2, 2], [1, 1, 1], [1, 1, 1]])}
    assert [run(net, name, **values).tolist() for name in g] == [[0, 3], rows]


# ---- operators that direct the flow ----------------------------------------------------------------------------------

def test_stop_gradient():
    for name in ("stop_gradient", "StopGradient"):
        net = Net()
        net.add_operator(name, "x", "c")
        net.mul(["x", "c"], "y")
        found = net.add_gradient_operators(["y"])
        assert "c" in found and run(net, found["x"], x=X).tolist() == X.tolist()


def test_stop_gradient_can_be_the_last_operator_and_a_head():
    """Defect 11 of Caffe2: an unused StopGradient was an error."""
    net = Net()
    net.square("x", "y")
    net.stop_gradient("y", "z")
    assert net.add_gradient_operators(["z"]) == {"z": "z_autogen_grad"}
    assert run(net, "z", x=X).tolist() == (X * X).tolist()


def test_stop_gradient_in_place():
    net = Net()
    net.relu("x", "x")
    net.stop_gradient("x", "x")
    net.square("x", "y")
    assert net.add_gradient_operators(["y"]) == {"y": "y_autogen_grad"}     # x is the blob before relu


def test_zero_gradient():
    for name in ("zero_gradient", "ZeroGradient"):
        net = Net()
        net.square("x", "y")
        net.add_operator(name, "x", [])
        net.exp("w", "z")
        found = net.add_gradient_operators(["z"])
        assert run(net, found["x"], x=X, w=X).tolist() == [0, 0, 0]
        both = Net()
        both.square("x", "y")
        both.add_operator(name, "x", [])
        found = both.add_gradient_operators(["y"])
        assert run(both, found["x"], x=X).tolist() == (2 * X).tolist()


def test_negate_gradient():
    for name in ("negate_gradient", "NegateGradient"):
        net = Net()
        net.add_operator(name, "x", "n")
        net.square("n", "y")
        found = net.add_gradient_operators(["y"])
        y, g = run(net, "n", found["x"], x=X)
        assert y.tolist() == X.tolist() and g.tolist() == (-2 * X).tolist()


def test_constants_and_numbers_have_no_gradient():
    net = Net()
    net.add_constant(X, "c")
    net.mul([net.mul(["x", 2.0]), "c"], "y")
    found = net.add_gradient_operators(["y"])
    assert {*found} == {"y", "mul", "x"} and run(net, found["x"], x=X).tolist() == (2 * X).tolist()


# ---- versions --------------------------------------------------------------------------------------------------------

def test_a_blob_that_was_written_again_names_all_writes():
    """facebookarchive/caffe2#680: the text did not tell what was written twice."""
    net = Net("n")
    net.square("x", "y")
    net.relu("x", "x")
    net.neg("x", "x")
    net.sum("y", "l")
    with pytest.raises(RuntimeError) as caught: net.add_gradient_operators(["l"])
    assert str(caught.value) == (
        "Net.add_gradient_operators: the gradient of operator 0, y = square(x), needs version 0 of the blob 'x', which "
        "has version 2 now: version 1 by operator 1, x = relu(x); version 2 by operator 2, x = neg(x); let the later "
        "operators write to another blob")
    assert len(net) == 4


def test_operators_in_place_one_after_the_other():
    """pytorch/pytorch#8186: operators in place, one after the other. Dropout reads none of its blobs again."""
    net = Net()
    net.linear(["x", "w"], "h")
    net.dropout("h", "h", p=0.5)
    net.relu("h", "h")
    net.sum("h", "l")
    net.training = False
    found = net.add_gradient_operators(["l"])
    a, b = np.array([[1.0, -2.0]]), np.array([[3.0, 1.0], [1.0, 2.0]])
    wanted = eager(lambda x, w: cg.sum(cg.relu(cg.linear(x, w))), a, b)
    for g, h in zip(run(net, found["x"], found["w"], x=a, w=b), wanted, strict=True): same_bits(g, h)


def test_an_input_that_is_written_later_has_the_gradient_of_its_first_version():
    net = Net()
    net.neg("x", "x")
    net.tanh("x", "x")
    found = net.add_gradient_operators(["x"])
    assert {*found} == {"x"}
    same_bits(run(net, found["x"], x=X), eager(lambda x: cg.tanh(-x), X)[0])


# ---- gradients that do not exist -------------------------------------------------------------------------------------

def test_an_unknown_operator_names_its_input_and_what_to_do():
    """facebookarchive/caffe2#385: users did not see which input needs the gradient. It is a RuntimeError (defect 8)."""
    net = Net()
    net.add_operator("mystery", ["x", "w"], "y")
    with pytest.raises(RuntimeError, match=r"operator 0, y = mystery\(x, w\), for its input 'x' does not exist: no row "
                                           r".* the type 'mystery'; register one with @cygrad.graph.register_gradient"):
        net.add_gradient_operators(["y"])
    assert len(net) == 1
    beside = Net()
    beside.add_operator("mystery", "x", "y")
    beside.square("x", "z")
    assert beside.add_gradient_operators(["z"])["x"] == "x_grad"            # it is not on the way


def test_a_python_operator_without_grad_f():
    net = Net()
    net.create_python_operator(np.tanh, "x", "y")
    with pytest.raises(RuntimeError, match="was added without grad_f; add it with one, or end the path with stop_grad"):
        net.add_gradient_operators(["y"])


def test_a_gradient_that_does_not_exist_at_run_time():
    net = Net()
    net.mul([net.sum("x"), net.argmax("x", "i")], "y")
    found = net.add_gradient_operators(["y"])
    assert run(net, found["x"], x=X).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="the blob 'i_grad' has no value"): run(net, found["i"], x=X)
    net.relu(found["i"], "r")
    with pytest.raises(RuntimeError, match="the blob 'i_grad' has no value: it is a gradient that does not exist"):
        run(net, x=X)
