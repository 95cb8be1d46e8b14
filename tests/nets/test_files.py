"""Net.save and Net.load: what is saved comes back, and malformed files are refused. The wordings are in
tests/support/wordings/graph.py."""

import copy
import json
import math
import os
import pickle
import random

import numpy as np
import pytest
from crafted import safetensors
from random_nets import chain, mlp, random_net, same, value

import cygrad as cg
from cygrad.graph import Net, Operator
from cygrad.nets.files import decode, encode
from cygrad.io import metadata


@pytest.mark.parametrize("seed", range(100))
def test_random_nets_come_back(tmp_path, seed):
    net = random_net(seed, seed % 25)
    net.save(tmp_path / "n.safetensors")
    found = Net.load(tmp_path / "n.safetensors")
    assert same(net, found)
    made = found.add(["of the file", 2]), net.add(["of the file", 2])
    assert made[0] == made[1] and same(net, found)  # (it continues as the first one does)


def test_large_nets_come_back(tmp_path):
    for net in (mlp(300), chain(2000), Net()):
        net.save(tmp_path / "n.safetensors")
        assert same(net, Net.load(tmp_path / "n.safetensors"))


def test_arguments_are_encoded_strictly():
    r = random.Random(1)
    for _ in range(2000):
        v = Operator("f", (), (), {"p": value(r)}).arguments["p"]
        text = json.dumps(encode(v), allow_nan=False)
        assert repr(decode(json.loads(text))) == repr(v)
    assert [encode(v) for v in (math.inf, -math.inf, 2.0, (1, ...), slice(None, 2))] == [
        {"float": "inf"}, {"float": "-inf"}, 2.0, [1, {"ellipsis": True}], {"slice": [None, 2, None]}]
    assert type(decode(2.0)) is float and type(decode(2)) is int and decode(True) is True


@pytest.mark.parametrize("found", [
    math.inf, math.nan, 1 << 64, -(1 << 63) - 1, {}, {"float": "1.0"}, {"float": 1.0}, {"float": ["inf"]},
    {"slice": [1, 2]}, {"slice": [1, 2, True]}, {"slice": [1, 2, 1.0]}, {"slice": [1, 2, 1 << 64]}, {"slice": "abc"},
    {"ellipsis": 1}, {"ellipsis": False}, {"ellipsis": True, "float": "inf"}, {"other": 1}, [{"float": "Infinity"}],
])
def test_other_encodings_are_refused(found):
    with pytest.raises(ValueError): decode(found)


def test_depth_of_an_encoding():
    found = []
    for _ in range(15): found = [found]
    decode(found)
    with pytest.raises(ValueError, match="at most 16 lists"): decode([found])


def test_the_file_is_plain(tmp_path):
    """Its tensors are the constants, which cg.load reads too."""
    net = mlp(1)
    net.add_constant(np.arange(3), "w0")
    net.mul(["loss", 2])
    net.save(tmp_path / "n.safetensors")
    found = cg.load(tmp_path / "n.safetensors")
    assert list(found) == ["w0"] and found["w0"].tolist() == [0, 1, 2]
    about = metadata(tmp_path / "n.safetensors")
    assert about.keys() == {"format", "version", "net"} and about["version"] == "1"
    assert json.loads(about["net"])["constants"] == [{"name": "w0"}, {"name": "constant", "value": 2}]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "n.safetensors"
    mlp(1).save(path)
    before = path.read_bytes()
    net = Net()
    net.create_python_operator(abs, "x")
    with pytest.raises(ValueError, match="operator 0 .python. calls abs"): net.save(path)
    net = Net()
    net.add_constant([1.0], "__metadata__")
    with pytest.raises(ValueError, match="Net.save: a tensor cannot have the name '__metadata__'"): net.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]
    with pytest.raises(FileNotFoundError): Net.load(tmp_path / "other.safetensors")


def test_no_code_is_run(tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "was run"),)

    path = tmp_path / "n.safetensors"
    in_metadata = safetensors({"__metadata__": {"net": pickle.dumps(Payload(), 0).decode()}})
    for content in (pickle.dumps(Payload()), in_metadata):
        path.write_bytes(content)
        with pytest.raises(ValueError): Net.load(path)
    assert not (tmp_path / "was run").exists()


def original(tmp_path):
    """The bytes of a file, its tensors' header and data, and its definitions."""
    net = random_net(7, 8)
    net.save(tmp_path / "original.safetensors")
    data = (tmp_path / "original.safetensors").read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    return data, header, data[8 + n:], json.loads(header["__metadata__"]["net"])


def places(found, path=()):
    """The path of each value in a JSON value."""
    yield path
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, v in items: yield from places(v, (*path, key))


JUNK = [None, True, -1, 0, 2.5, 1 << 70, 1e308, "", "x", "mul", " a", "\n", "\ud800", [], [[]], {}, {"float": "inf"},
        {"slice": [0, 1, 2]}, {"name": "x"}, ["x", "x"], "python", "<script>", "__metadata__", [[2], "float32"]]


def mutated(r, definitions):
    """The definitions with one to three random changes."""
    found = copy.deepcopy(definitions)
    for _ in range(r.randint(1, 3)):
        path = r.choice([p for p in places(found) if p] or [None])
        if path is None: return r.choice(JUNK)
        parent = found
        for key in path[:-1]: parent = parent[key]
        kind = r.randrange(5)
        if kind == 0: del parent[path[-1]]
        elif kind == 1 and isinstance(parent, dict):
            parent[r.choice(["new", "value", "type", "is_gradient"])] = r.choice(JUNK)
        elif kind == 1: parent.insert(r.randrange(len(parent) + 1), r.choice([*JUNK, copy.deepcopy(r.choice(parent))]))
        elif kind == 2 and isinstance(parent, list): r.shuffle(parent)
        elif kind == 3:
            other = definitions
            for key in r.choice([*places(definitions)]): other = other[key]
            parent[path[-1]] = copy.deepcopy(other)
        else: parent[path[-1]] = r.choice(JUNK)
    return found


def fuzzed(tmp_path, seed):
    """1,000 files: bytes changed, truncated, and with other definitions."""
    r = random.Random(seed)
    data, header, tensors, definitions = original(tmp_path)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(r.choice([1, 1, 2, 8])): changed[r.randrange(len(data))] ^= 1 << r.randrange(8)
        yield bytes(changed)
    for _ in range(100): yield data[:r.randrange(len(data))]
    for _ in range(600):
        text = json.dumps(mutated(r, definitions))
        if r.random() < 0.1:                        # damage in the text of the JSON itself
            i = r.randrange(len(text))
            text = text[:i] + r.choice(["", "[", "}", "NaN", "1e999", "\\", "9" * 5000, "[" * 3000]) + text[i + 1:]
        header["__metadata__"]["net"] = text
        yield safetensors(header, tensors)


@pytest.mark.parametrize("seed", range(3))
def test_fuzzed_files_give_an_error_or_a_valid_net(tmp_path, seed):
    path, refused = tmp_path / "n.safetensors", 0
    for content in fuzzed(tmp_path, seed):
        path.write_bytes(content)
        try:
            net = Net.load(path)
        except (ValueError, OSError) as e:
            assert str(e).startswith("Net.load: ") and len(str(e)) < 1500
            assert "\n" not in str(e)
            refused += 1
        else:
            assert len(net.text()) > 10
            if refused % 10: continue
            net.to_svg(), net.to_dot()
            net.save(tmp_path / "again.safetensors")
            assert same(net, Net.load(tmp_path / "again.safetensors"))
    assert 600 < refused < 1000


def test_a_hostile_text_takes_memory_in_proportion(tmp_path):
    import tracemalloc

    path = tmp_path / "n.safetensors"
    for text in ("[" * 3_000_000, "[" + "[]," * 3_000_000 + "[]]", "[" * 900_000, '"' + "a" * 17_000_000 + '"',
                 "{" + '"":0,' * 900_000 + '"":0}', "9" * 1_000_000):
        path.write_bytes(safetensors({"__metadata__": {"format": "cygrad.graph", "version": "1", "net": text}}))
        tracemalloc.start()
        with pytest.raises(ValueError, match="^Net.load: ") as caught: Net.load(path)
        nbytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(str(caught.value)) < 1000 and nbytes < 150_000_000


def test_tensors_are_not_loaded_before_the_definitions_are_checked(tmp_path):
    from cygrad.testing import fail_allocation

    net = mlp(1)
    net.add_constant(np.zeros(1000), "w0")
    net.save(tmp_path / "n.safetensors")
    data = (tmp_path / "n.safetensors").read_bytes().replace(b"relu_gradient", b"relu gradi\\u00ft")
    (tmp_path / "n.safetensors").write_bytes(data)
    with fail_allocation(1, persistent=True) as failure:
        with pytest.raises(ValueError): Net.load(tmp_path / "n.safetensors")
    assert failure.allocations == 0
