"""What get_backward_pass returns: Caffe2's cases of lists with registered rules, and lists that run."""

import numpy as np
import pytest
from net_runs import filled, run

import cygrad as cg
from cygrad.graph import GradientRegistry, Net, Operator, register_gradient

X = np.array([0.5, -1.0, 2.0])
W = np.array([1.5, 2.0, -0.5])


def rule(reads):
    """A rule for one input and one output that names its result x_grad, whatever the blobs are called."""
    def gradient(operator, output_gradients):
        if output_gradients[0] is None: return [], [None]
        names = {"input": operator.inputs[:1], "output": operator.outputs[:1], "nothing": ()}[reads]
        return [Operator(f"{operator.type}_rule", [*names, output_gradients[0]], "x_grad")], ["x_grad"]
    return gradient


def multiplied(operator, output_gradients):
    """Of y = x u, for x alone."""
    return [Operator("mul", [output_gradients[0], operator.inputs[1]], "x_grad")], ["x_grad", None]


@pytest.fixture(autouse=True)
def rules():
    """Types without an implementation, whose gradients read nothing, the input or the output."""
    types = {"direct": rule("nothing"), "use_input": rule("input"), "use_output": rule("output"),
             "no_gradient": lambda operator, output_gradients: ([], [None] * len(operator.inputs))}
    for type, f in types.items(): register_gradient(type)(f)
    yield
    for type in (*types, "mul", "exp"): register_gradient(type)(None)


def chain(*operators):
    """Operators of (type, inputs, output)."""
    return [Operator(type, inputs, output) for type, inputs, output in operators]


def check_chain(operators, head, blob):
    """Each operator reads what the one before it wrote, from the head to the gradient of the blob."""
    at = head
    for o in operators:
        assert o.inputs[-1] == at and o.is_gradient
        at = o.outputs[0]
    assert at == blob


# ---- registered rules, as in Caffe2 ----------------------------------------------------------------------------------

def test_direct():
    """A head that nothing writes is an input."""
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "hidden"), ("direct", "hidden", "out")), {"out": "out_grad"})
    assert [o.type for o in operators] == ["direct_rule"] * 2 and {*found} == {"in", "hidden", "out"}
    check_chain(operators, "out_grad", found["in"])
    assert operators[0].outputs == (found["hidden"],) and found["out"] == "out_grad"


def test_direct_with_a_head_of_ones():
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "hidden"), ("direct", "hidden", "out")), ["out"])
    assert operators[0].type == "ones_like" and operators[0].inputs == ("out",)
    check_chain(operators[1:], found["out"], found["in"])


def test_operators_off_the_way_have_no_gradient():
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "hidden"), ("direct", "hidden", "out"), ("use_input", "hidden", "beside"),
        ("unknown", "beside", "further")), {"hidden": "hidden_grad"})
    assert len(operators) == 1 and {*found} == {"in", "hidden"}


def test_without_heads_there_are_no_gradients():
    for ys in ([], {}):
        assert GradientRegistry.get_backward_pass(chain(("direct", "in", "out")), ys) == ([], {})


def test_direct_in_place():
    """x, then twice written over itself: the rule calls each result x_grad."""
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "x"), ("direct", "x", "x"), ("direct", "x", "x"), ("direct", "x", "out")), ["out"])
    assert len(operators) == 5 and len({o.outputs[0] for o in operators}) == 5
    check_chain(operators[1:], found["out"], found["in"])
    assert found["x"] == operators[-2].outputs[0]           # of the first version


def test_use_output_in_place():
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("use_output", "in", "x"), ("direct", "x", "out")), ["out"])
    assert operators[-1].inputs[0] == "x"
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "x"), ("use_output", "x", "x"), ("direct", "x", "out")), ["out"])
    assert operators[2].inputs[0] == "x"
    check_chain(operators[1:], found["out"], found["in"])


@pytest.mark.parametrize("operators", [
    chain(("use_output", "in", "x"), ("direct", "x", "x"), ("direct", "x", "out")),
    chain(("use_input", "in", "x"), ("direct", "x", "in"), ("direct", "in", "out")),
    chain(("use_output", "in", "x"), ("use_output", "x", "x"), ("direct", "x", "out")),
], ids=["output", "input", "output in place"])
def test_what_a_rule_reads_must_have_its_version(operators):
    with pytest.raises(RuntimeError, match="needs version .* of the blob .*, which has version .* now: version 1 by"):
        GradientRegistry.get_backward_pass(operators, ["out"])


def test_a_version_that_no_gradient_needs_can_be_overwritten():
    operators = chain(("use_output", "in", "x"), ("direct", "x", "out"), ("direct", "out", "x"))
    with pytest.raises(RuntimeError, match="version"): GradientRegistry.get_backward_pass(operators, ["out"])
    assert GradientRegistry.get_backward_pass(chain(
        ("use_input", "in", "x"), ("direct", "x", "out"), ("direct", "out", "x")), ["out"])[1]["in"]


def test_an_input_of_several_operators():
    """Three gradients come to `in`, of which two are added first."""
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "a"), ("direct", "in", "b"), ("use_input", "in", "c"),
        ("add", ["a", "b"], "d"), ("add", ["d", "c"], "out")), ["out"])
    assert [o.type for o in operators].count("add") == 2 and operators[-1].outputs == (found["in"],)
    written = [n for o in operators for n in o.outputs]
    assert len({*written}) == len(written)


def test_an_input_of_several_operators_of_which_one_has_no_gradient():
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("no_gradient", "in", "a"), ("direct", "in", "b"), ("add", ["a", "b"], "out")), ["out"])
    assert "add" not in [o.type for o in operators] and found["in"] == operators[-1].outputs[0]


def test_an_input_of_several_operators_and_versions():
    """`in` is read twice before it is written, and twice after."""
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "a"), ("direct", "in", "b"), ("add", ["a", "b"], "in"),
        ("direct", "in", "c"), ("direct", "in", "d"), ("add", ["c", "d"], "out")), ["out"])
    assert [o.type for o in operators].count("add") == 2 and operators[-1].outputs == (found["in"],)


def test_stop_gradient():
    for type in ("StopGradient", "stop_gradient"):
        operators, found = GradientRegistry.get_backward_pass(chain(
            ("direct", "in", "hidden"), (type, "hidden", "hidden2"), ("direct", "hidden2", "out")), ["out"])
        assert len(operators) == 2 and {*found} == {"out", "hidden2"}


def test_stop_gradient_in_place():
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "x"), ("StopGradient", "x", "x"), ("direct", "x", "out")), ["out"])
    assert len(operators) == 2 and {*found} == {"out"}


def test_stop_gradient_beside_another_use():
    operators, found = GradientRegistry.get_backward_pass(chain(
        ("direct", "in", "hidden"), ("StopGradient", "hidden", "auxiliary"), ("direct", "auxiliary", "out2"),
        ("direct", "hidden", "out")), ["out", "out2"])
    assert "add" not in [o.type for o in operators] and {*found} == {"in", "hidden", "out", "out2", "auxiliary"}


def test_the_other_names_of_types():
    """Operator has them too, not only Net.add_operator."""
    for name, type in (("StopGradient", "stop_gradient"), ("ZeroGradient", "zero_gradient"),
                       ("NegateGradient", "negate_gradient"), ("EnsureDense", "ensure_dense")):
        made = Operator(name, "x", "y")
        assert made.type == type and made == Operator(type, "x", "y")
        net = Net()
        net.add_operator(made)
        assert net.operators == (made,)
    operators, found = GradientRegistry.get_backward_pass(
        [Operator("NegateGradient", "x", "n"), Operator("square", "n", "y")], ["y"])
    net = Net()
    for o in (Operator("NegateGradient", "x", "n"), Operator("square", "n", "y")): net.add_operator(o)
    assert run_with(net.operators, ["y"], "x", x=X).tolist() == (-2 * X).tolist()


# ---- lists that run --------------------------------------------------------------------------------------------------

def run_with(forward, ys, *blobs, constants=(), **values):
    """The gradients of blobs, by the operators of get_backward_pass in a net after the others."""
    operators, found = GradientRegistry.get_backward_pass(list(forward), ys)
    net = Net()
    for o in forward: net.add_operator(o)
    for o in operators: net.add_operator(o)
    return run(net, *[found[b] for b in blobs], **values)


def gradients(f, *arrays):
    xs = [cg.tensor(a).requires_grad_() for a in arrays]
    with cg.record(): ys, heads = f(*xs)
    return [g.numpy() for g in cg.autograd.grad(ys, xs, heads)]


DIAMOND = chain(("exp", "x", "a"), ("mul", ["x", "a"], "b"), ("mul", ["a", "x"], "c"), ("add", ["b", "c"], "d"),
                ("mul", ["d", "x"], "out"))


def diamond(x):
    a = cg.exp(x)
    return (x * a + a * x) * x


def test_a_blob_that_is_used_many_times():
    g = run_with(DIAMOND, ["out"], "x", x=X)
    np.testing.assert_array_equal(g, gradients(lambda x: (diamond(x), None), X)[0])
    operators = chain(("mul", ["x", "x"], "y"), ("mul", ["y", "y"], "z"), ("mul", ["z", "y"], "out"))
    g = run_with(operators, ["out"], "x", x=X)
    np.testing.assert_array_equal(g, gradients(lambda x: (((y := x * x) * y) * y, None), X)[0])


def test_several_heads():
    operators = [*DIAMOND, *chain(("sin", "d", "s"), ("sum", "b", "t"))]

    def f(x, h):
        a = cg.exp(x)
        b = x * a
        d = b + a * x
        return [d * x, cg.sin(d), cg.sum(b), d], [None, h.detach(), None, h.detach()]

    ys = {"out": None, "s": "h", "t": None, "d": "h"}
    g = run_with(operators, ys, "x", x=X, h=W)
    x = cg.tensor(X).requires_grad_()
    with cg.record(): heads = f(x, cg.tensor(W))
    np.testing.assert_array_equal(g, cg.autograd.grad(heads[0], x, heads[1]).numpy())


def test_the_parts_of_a_sum_have_values_one_by_one():
    """In immediate mode each operator runs as it is added."""
    operators, found = GradientRegistry.get_backward_pass(DIAMOND, ["out"])
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        for o in (*DIAMOND, *operators): net.add_operator(o)
    np.testing.assert_allclose(workspace.fetch(found["x"]).numpy(), gradients(lambda x: (diamond(x), None), X)[0],
                               rtol=1e-14)


def test_an_edited_list_runs():
    """An operator among those of the pass."""
    operators, found = GradientRegistry.get_backward_pass(DIAMOND, ["out"])
    net = Net()
    for o in DIAMOND: net.add_operator(o)
    for k, o in enumerate(operators):
        net.add_operator(o)
        if k == 2: net.neg("x", "beside")
    parts = [n for o in operators for n in o.outputs if "autosplit" in n]
    assert len(parts) > 3
    got = run(net, found["x"], *parts, x=X)
    np.testing.assert_allclose(got[0], gradients(lambda x: (diamond(x), None), X)[0], rtol=1e-14)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_rule_of_an_operator_that_writes_over_its_input(inplace):
    """y = x u u, the rule names what it writes x_grad: it must not read its own result."""
    register_gradient("mul")(multiplied)
    net = Net()
    net.copy("w", "x")
    for _ in range(2): net.mul(["x", "u"], "x", **{"inplace": True} if inplace else {})
    net.sum("x", "s")
    found = net.add_gradient_operators(["s"])
    assert "x_grad" not in net.inputs and net.inputs == ("w", "u")
    np.testing.assert_array_equal(run(net, found["w"], w=X, u=W), W * W)
    other = Net()
    for o in net.operators: other.add_operator(o)
    np.testing.assert_array_equal(run(other, found["w"], w=X, u=W), W * W)
    np.testing.assert_array_equal(run_with(net.operators[:4], ["s"], "w", w=X, u=W), W * W)


def test_a_rule_that_names_its_results_as_the_list_names_blobs():
    """Results called as the gradient that the rule reads, as a blob of the list, and one name written twice."""
    def squared(operator, output_gradients):
        g, = output_gradients
        return [Operator("mul", [operator.outputs[0], g], "y_grad"), Operator("add", ["y_grad", "y_grad"], "y_grad"),
                Operator("mul", ["y_grad", "y_grad"], "x"),
                Operator("div", ["x", "y_grad"], "x")], ["x"]

    register_gradient("exp")(squared)
    net = Net()
    net.exp("x", "y")
    net.sum("y", "s")
    found = net.add_gradient_operators(["s"])
    assert net.inputs == ("x",)
    np.testing.assert_allclose(run(net, found["x"], x=X), 2 * np.exp(X), rtol=1e-14)


def test_a_rule_in_a_list_that_uses_a_blob_twice():
    register_gradient("mul")(lambda operator, g: (
        [Operator("mul", [g[0], operator.inputs[1 - i]], f"g{i}") for i in (0, 1)], ["g0", "g1"]))
    np.testing.assert_allclose(run_with(DIAMOND, ["out"], "x", x=X), gradients(lambda x: (diamond(x), None), X)[0],
                               rtol=1e-14)


# ---- heads -----------------------------------------------------------------------------------------------------------

def test_a_head_that_nothing_writes_is_an_input_of_the_net():
    net = Net()
    net.mul(["x", "w"], "y")
    net.exp("y", "z")
    found = net.add_gradient_operators({"z": "z_head", "y": "y_head"})
    assert net.inputs == ("x", "w", "z_head", "y_head") and found["z"] == "z_head"
    h = cg.tensor(W)

    def f(x, w):
        y = x * w
        return [cg.exp(y), y], [h, h]

    for g, wanted in zip(run(net, found["x"], found["w"], x=X, w=W, z_head=W, y_head=W), gradients(f, X, W),
                         strict=True):
        np.testing.assert_array_equal(g, wanted)
    assert net.plan(dict.fromkeys(net.inputs, 3)).peak_bytes > 0
    with pytest.raises(ValueError, match="the input 'z_head' of net net has no value; feed it first"):
        run(net, x=X, w=W, y_head=W)


def test_a_head_that_no_operator_reads_is_an_input_too():
    net = Net()
    net.relu("x", "y")
    assert net.add_gradient_operators({"x": "h"}) == {"x": "h"} and {*net.inputs} == {"x", "h"} and "h" in net
    assert run(net, "h", x=X, h=W).tolist() == W.tolist()
    other = net.clone()
    assert {*other.inputs} == {"x", "h"}


def test_a_head_is_not_taken_for_a_gradient_that_the_list_makes():
    net = Net()
    net.mul(["x", "w"], "y")
    found = net.add_gradient_operators({"y": "x_grad"})
    assert found["x"] != "x_grad"
    np.testing.assert_array_equal(run(net, found["x"], x=X, w=W, x_grad=X), W * X)


def test_a_saved_net_has_its_heads(tmp_path):
    net = Net()
    net.mul(["x", "w"], "y")
    found = net.add_gradient_operators({"y": "h"})
    net.save(tmp_path / "net.safetensors")
    other = Net.load(tmp_path / "net.safetensors")
    assert other.inputs == net.inputs
    np.testing.assert_array_equal(run(other, found["x"], x=X, w=W, h=X), W * X)


def test_unknown_blobs_to_differentiate_are_still_refused():
    for operators, ys in ((DIAMOND, ["zz"]), (DIAMOND, {"zz": "out"}), ([], ["x"])):
        with pytest.raises(ValueError, match="get_backward_pass: there is no blob"):
            GradientRegistry.get_backward_pass(operators, ys)


def test_workspace_run_of_a_backward_net_names_what_is_missing():
    """The operators alone, without those whose gradients they are."""
    operators, _ = GradientRegistry.get_backward_pass(DIAMOND, {"out": "h"})
    net = Net()
    for o in operators: net.add_operator(o)
    with pytest.raises(RuntimeError, match=r"mul_gradient needs the operator out = mul\(d, x\), which has not run"):
        run(net, x=X, h=W, a=X, d=X)
