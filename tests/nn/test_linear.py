"""Linear layers, embeddings, dropout, distances, and losses that PyTorch's list of modules lacks. The others are in
test_layers.py."""

import copy
import math
import pickle

import numpy as np
import pytest
from peers import torch

import cygrad as cg
from cygrad import nn


def grads(found, y):
    """Gradients of the parameters of a module for the heads 1, 2, 3, ..."""
    y.backward(cg.arange(1, y.size + 1, dtype=y.dtype).reshape(y.shape))
    return {name: x.grad.numpy() for name, x in found.named_parameters()}


def their_grads(m, y):
    y.backward(torch.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape))
    return {name: x.grad.numpy() for name, x in m.named_parameters()}


def agree(found, m, ours, theirs):
    """Compare results and gradients of a layer and PyTorch's module."""
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-12, 1e-12)
    ours, theirs = grads(found, ours), their_grads(m, theirs)
    assert list(ours) == list(theirs)
    for name in ours: np.testing.assert_allclose(ours[name], theirs[name], 1e-12, 1e-12, err_msg=name)


@pytest.mark.parametrize("make, shapes, bound", [
    (lambda **k: nn.Linear(7, 5, **k), {"weight": (5, 7), "bias": (5,)}, 7 ** -0.5),
    (lambda **k: nn.Bilinear(4, 3, 5, **k), {"weight": (5, 4, 3), "bias": (5,)}, 0.5),
    (lambda **k: nn.LinearCrossEntropyLoss(7, 5, bias=True, **k), {"linear.weight": (5, 7), "linear.bias": (5,)},
     7 ** -0.5),
])
def test_defaults_of_linear_layers(make, shapes, bound):
    found = make(generator=cg.random.Generator(1))
    assert {name: x.shape for name, x in found.named_parameters()} == shapes
    for x in found.parameters():
        a = x.numpy()
        assert x.dtype == cg.float32 and x.grad_req == "add" and x.grad is None and len(set(a.flat)) == a.size
        assert (abs(a) <= bound).all() and abs(a).max() > bound / 2
    again = make(generator=cg.random.Generator(1))
    for x, y in zip(found.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert {x.dtype for x in make(dtype="float64", device="cpu").parameters()} == {cg.float64}


def test_linear_without_bias():
    found = nn.Linear(3, 2, bias=False)
    assert [name for name, _ in found.named_parameters()] == ["weight"] and found.bias is None
    assert repr(found) == "Linear(3, 2, bias=False)  # 6 parameters, 24 bytes" and "bias" not in found.state_dict()


def test_linear_of_an_unknown_size():
    found = nn.Linear(None, 2, dtype="float64", generator=cg.random.Generator(3))
    twin = pickle.loads(pickle.dumps(found))
    assert repr(found) == "Linear(None, 2)  # waits for its input size" and found.in_features is None
    assert found(np.ones((4, 5))).shape == (4, 2) and found.in_features == 5
    expected = nn.Linear(5, 2, dtype="float64", generator=cg.random.Generator(3))
    np.testing.assert_array_equal(found.weight.numpy(), expected.weight.numpy())
    assert repr(found) == "Linear(5, 2)  # 12 parameters, 96 bytes"
    twin.load_state_dict(found.state_dict())
    assert twin.in_features == 5
    np.testing.assert_array_equal(twin.bias.numpy(), expected.bias.numpy())
    with pytest.raises(ValueError, match="missing: 'bias'"):
        nn.Linear(None, 2).load_state_dict({"weight": expected.weight.detach().astype("float32")})


def test_bilinear_and_linear_chain_with_pytorch():
    m = torch.nn.Bilinear(3, 4, 2, dtype=torch.float64)
    found = nn.Bilinear(3, 4, 2, dtype="float64")
    found.load_state_dict(m.state_dict())
    x, y = np.random.default_rng(0).normal(size=(5, 3)), np.random.default_rng(1).normal(size=(5, 4))
    with cg.record():
        out = found(x, y)
    agree(found, m, out, m(torch.from_numpy(x), torch.from_numpy(y)))


def test_identity_and_flatten():
    x = cg.ones(2, 3, 4)
    assert nn.Identity(54, unused=1)(x) is x
    assert nn.Flatten()(x).shape == (2, 12) and nn.Flatten(0, 1)(x).shape == (6, 4) and nn.Flatten(0)(x).shape == (24,)


# ---- embedding -------------------------------------------------------------------------------------------------------

def test_embedding():
    found = nn.Embedding(5, 3, padding_idx=-1, generator=cg.random.Generator(0))
    assert found.padding_idx == 4 and (found.weight.numpy()[4] == 0).all() and (found.weight.numpy()[:4] != 0).all()
    with cg.record():
        y = found(cg.tensor([[0, 4], [0, 1]]))
    y.backward(cg.ones(y.shape))
    assert y.shape == (2, 2, 3) and found.weight.grad.numpy()[:, 0].tolist() == [2, 1, 0, 0, 0]
    assert repr(found) == "Embedding(5, 3, padding_idx=4)  # 15 parameters, 60 bytes"
    assert "padding_idx=0" in repr(nn.Embedding(5, 3, padding_idx=0))


def test_sparse_embedding_updates_its_rows():
    found = nn.Embedding(100, 3, sparse=True)
    before = found.weight.numpy().copy()
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters(dict(found.named_parameters()))
    for _ in range(2):
        with cg.record():
            y = found(cg.tensor([7, 7, 2])).sum()
        y.backward()
        assert type(found.weight.grad) is cg.GradientSlice
        solver.update()
        found.zero_grad()
    changed = (found.weight.numpy() != before).any(axis=1).nonzero()[0]
    assert changed.tolist() == [2, 7]
    np.testing.assert_allclose(found.weight.numpy()[7], before[7] - 4, 1e-5)


def test_from_pretrained():
    a = np.random.default_rng(0).normal(size=(4, 2))
    found = nn.Embedding.from_pretrained(a, padding_idx=1, sparse=True)
    assert found.num_embeddings == 4 and found.embedding_dim == 2 and not found.weight.requires_grad and found.sparse
    np.testing.assert_array_equal(found.weight.numpy(), a)
    assert [name for name, _ in found.named_parameters()] == ["weight"] and found.weight.dtype == cg.float64
    w = cg.tensor(a)
    bag = nn.EmbeddingBag.from_pretrained(w, freeze=False, mode="sum")
    assert bag.weight is w and w.requires_grad and bag.mode == "sum"


@pytest.mark.parametrize("options", [{}, {"mode": "sum"}, {"mode": "max"}, {"padding_idx": 2},
                                     {"include_last_offset": True}])
def test_embedding_bag(options):
    m = torch.nn.EmbeddingBag(6, 3, dtype=torch.float64, **options)
    found = nn.EmbeddingBag(6, 3, dtype="float64", **options)
    found.load_state_dict(m.state_dict())
    indices, offsets = np.array([0, 2, 5, 2, 1]), np.array([0, 3, 5] if "include_last_offset" in options else [0, 3])
    with cg.record():
        y = found(cg.tensor(indices), cg.tensor(offsets))
    agree(found, m, y, m(torch.from_numpy(indices), torch.from_numpy(offsets)))


def test_embedding_bag_with_weights():
    m, found = torch.nn.EmbeddingBag(6, 3, mode="sum", dtype=torch.float64), nn.EmbeddingBag(6, 3, mode="sum",
                                                                                           dtype="float64")
    found.load_state_dict(m.state_dict())
    indices, weights = np.array([[0, 2], [5, 2]]), np.array([[1.0, 2.0], [0.5, -1.0]])
    with cg.record():
        y = found(cg.tensor(indices), per_sample_weights=cg.tensor(weights))
    agree(found, m, y, m(torch.from_numpy(indices), per_sample_weights=torch.from_numpy(weights)))


# ---- dropout ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("cls, shape, same", [
    (nn.Dropout, (200, 50), ()), (nn.Dropout1d, (20, 50, 7), (2,)), (nn.Dropout1d, (500, 7), (1,)),
    (nn.Dropout2d, (20, 50, 3, 2), (2, 3)), (nn.Dropout3d, (20, 50, 2, 3, 2), (2, 3, 4)),
    (nn.Dropout3d, (500, 2, 3, 2), (1, 2, 3)),
])
def test_dropout(cls, shape, same):
    found = cls(0.2, generator=cg.random.Generator(4))
    x = cg.ones(shape).attach_grad()
    with cg.record():
        y = found(x)
    kept = y.numpy() != 0
    np.testing.assert_array_equal(y.numpy(), np.where(kept, np.float32(1 / 0.8), 0))
    assert (kept.all(axis=same) == kept.any(axis=same)).all() and 0.72 < kept.mean() < 0.88
    y.backward(cg.ones(shape))
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    again = cls(0.2, generator=cg.random.Generator(4))
    with cg.train_mode():
        np.testing.assert_array_equal(again(x.detach()).numpy(), y.detach().numpy())
        assert (cls(0.0)(x.detach()).numpy() == 1).all() and (cls(1.0)(x.detach()).numpy() == 0).all()
    with cg.predict_mode():
        assert found(x).numpy().all() and found.eval()(x).numpy().all()
        with pytest.raises(RuntimeError, match=rf"{cls.__name__}: train\(\) was called"):
            found.train()(x)
    twin = copy.deepcopy(found)
    with cg.train_mode():
        np.testing.assert_array_equal(twin(x.detach()).numpy(), found(x.detach()).numpy())


# ---- distances -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("ours, theirs", [
    (nn.CosineSimilarity(), torch.nn.CosineSimilarity()),
    (nn.CosineSimilarity(-1, 1e-3), torch.nn.CosineSimilarity(-1, 1e-3)),
    (nn.PairwiseDistance(), torch.nn.PairwiseDistance()),
    (nn.PairwiseDistance(1.0, 0.1, True), torch.nn.PairwiseDistance(1.0, 0.1, True)),
    (nn.PairwiseDistance(math.inf), torch.nn.PairwiseDistance(math.inf)),
], ids=repr)
@pytest.mark.parametrize("shapes", [((5, 3), (5, 3)), ((4, 5, 3), (5, 3)), ((4, 1, 3), (1, 5, 3))], ids=str)
def test_distances(ours, theirs, shapes):
    xs = [np.random.default_rng(i).normal(size=shape) for i, shape in enumerate(shapes)]
    with cg.record():
        ys = [cg.tensor(x).attach_grad() for x in xs]
        y = ours(*ys)
    ts = [torch.from_numpy(x).requires_grad_() for x in xs]
    t = theirs(*ts)
    np.testing.assert_allclose(y.detach().numpy(), t.detach().numpy(), 1e-12)
    head = np.arange(1.0, y.size + 1).reshape(y.shape)
    y.backward(cg.tensor(head))
    t.backward(torch.from_numpy(head))
    for a, b in zip(ys, ts, strict=True): np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-10, 1e-12)
    assert repr(nn.CosineSimilarity()) == "CosineSimilarity(axis=1, eps=1e-08)"
    assert repr(nn.PairwiseDistance()) == "PairwiseDistance(p=2.0, eps=1e-06, keepdims=False)"


# ---- the rest --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, options", [("Hardsigmoid", {}), ("GELU", {"approximate": "tanh"}),
                                           ("PReLU", {"num_parameters": 4, "init": 0.1})])
def test_activations_that_the_samples_lack(name, options):
    m, found = getattr(torch.nn, name)(**options).double(), getattr(nn, name)(**options).astype("float64")
    a = np.random.default_rng(0).normal(size=(6, 4)) * 3
    x = cg.tensor(a).attach_grad()
    with cg.record():
        y = found(x)
    y.backward(cg.ones(y.shape, dtype="float64"))
    t = torch.from_numpy(a).requires_grad_()
    u = m(t)
    u.backward(torch.ones_like(u))
    np.testing.assert_allclose(y.detach().numpy(), u.detach().numpy(), 1e-12, 1e-12)
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), 1e-7, 1e-12)       # (PyTorch's 1/6 is float32)


@pytest.mark.parametrize("options", [{}, {"margin": 0.3, "p": 1.0, "swap": True, "reduction": "sum"},
                                     {"reduction": "none", "eps": 1e-3}])
def test_triplet_margin_loss(options):
    xs = [np.random.default_rng(i).normal(size=(5, 3)) for i in range(3)]
    ours, theirs = [cg.tensor(x).attach_grad() for x in xs], [torch.from_numpy(x).requires_grad_() for x in xs]
    with cg.record():
        y = nn.TripletMarginLoss(**options)(*ours)
    u = torch.nn.TripletMarginLoss(**options)(*theirs)
    np.testing.assert_allclose(y.detach().numpy(), u.detach().numpy(), 1e-12)
    y.backward(cg.ones(y.shape, dtype="float64"))
    u.sum().backward()
    for x, t in zip(ours, theirs, strict=True): np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), 1e-10, 1e-12)


def test_weights_of_losses_are_buffers():
    w = np.array([1.0, 2.0, 0.5])
    found = nn.CrossEntropyLoss(w)
    assert [name for name, _ in found.named_buffers()] == ["weight"] and not list(found.parameters())
    assert list(nn.BCEWithLogitsLoss(pos_weight=w).state_dict()) == ["pos_weight"] and not nn.NLLLoss().state_dict()
    x, target = np.random.default_rng(0).normal(size=(4, 3)), np.array([0, 2, 1, 1])
    theirs = torch.nn.CrossEntropyLoss(torch.from_numpy(w))(torch.from_numpy(x), torch.from_numpy(target))
    assert math.isclose(found(cg.tensor(x), cg.tensor(target)).item(), theirs.item(), rel_tol=1e-12)
    assert found.astype("float32").weight.dtype == cg.float32
