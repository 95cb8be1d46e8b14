"""Drawings: valid XML, every operator and blob, no overlaps, few crossings, hostile names."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from random_nets import chain, mlp, random_net

from cygrad.graph import Net, Operator
from cygrad.nets.drawing import LONG, Sheet, versions
from cygrad.drawing.layers import Vertex, arrange, bends, crossings, longest_paths

SVG = "{http://www.w3.org/2000/svg}"


def drawn(net):
    return ElementTree.fromstring(net.to_svg())


def classes(root, name):
    return [e for e in root.iter() if name in e.get("class", "").split()]


def texts(root):
    return [e.text for e in root.iter(SVG + "text")]


def test_every_operator_and_blob_is_drawn():
    net = mlp(3)
    root = drawn(net)
    assert len(classes(root, "box")) == len(net) == 19 and len(classes(root, "gradient")) == 12
    labels = texts(root)
    assert {*net.blobs} <= {*labels} and labels.count("linear") == 3 and labels.count("label_smoothing=0.1") == 1
    assert len(classes(root, "output")) == len(net.outputs) == 6
    assert len(classes(root, "edge")) == sum(len({*o.inputs}) for o in net)
    titles = [e.text for e in root.iter(SVG + "title")]
    assert titles[0] == "mlp: 19 operators" and f"0  {net.operators[0]!r}" in titles


def test_in_place_writes_are_versions():
    net = Net()
    net.relu("x", "x")
    net.exp("x", "x")
    net.add(["x", "y"], "z")
    assert [(v.name, v.number, v.writer, v.readers) for v in versions(net)] == [
        ("x", 0, None, [0]), ("x", 1, 0, [1]), ("x", 2, 1, [2]), ("y", 0, None, [2]), ("z", 1, 2, [])]
    assert {"x v0", "x v1", "x v2", "y", "z"} <= {*texts(drawn(net))}
    assert '"x v2"' in net.to_dot()


def test_an_edge_over_many_layers_is_a_link():
    net = chain(3 * LONG)
    net.add(["relu", net.operators[-1].outputs[0]], "sum")
    root = drawn(net)
    again, = classes(root, "again")
    link, = root.iter(SVG + "a")
    ids = {e.get("id"): e for e in root.iter() if e.get("id")}
    target = ids[link.get("href")[1:]]
    assert again in list(link.iter()) and target.find(SVG + "text").text == "relu"
    assert not classes(drawn(chain(LONG)), "again")


def test_constants_and_inputs_differ():
    net = Net()
    net.add_constant([1.0, 2.0], "w")
    net.add([net.mul(["w", 0.5]), "x"])
    net.shapes["x"] = (3,), "float32"
    root = drawn(net)
    assert len(classes(root, "constant")) == 2 and len(classes(root, "input")) == 1
    assert {"w: float32 (2,)", "constant = 0.5", "x: float32 (3,)"} <= {e.text for e in root.iter(SVG + "title")}


def overlapping(boxes):
    """Pairs of rectangles (x, y, width, height) that overlap."""
    boxes = sorted(boxes, key=lambda b: b[1])
    return [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1:i + 60]
            if b[1] < a[1] + a[3] - 0.1 and a[0] < b[0] + b[2] - 0.1 and b[0] < a[0] + a[2] - 0.1]


@pytest.mark.parametrize("make, n", [(mlp, 5), (chain, 40), *((random_net, seed) for seed in range(20)), (Net, "none")])
def test_nothing_overlaps_or_leaves_the_drawing(make, n):
    root = drawn(random_net(n, 30) if make is random_net else make(n))
    width, height = float(root.get("width")), float(root.get("height"))
    found = [[float(e.get(key)) for key in ("x", "y", "width", "height")]
             for e in (*classes(root, "box"), *classes(root, "oval"))]
    assert not overlapping(found)
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in found)
    for e in classes(root, "edge"):
        ys = [float(y) for y in re.findall(r"[,V](-?[\d.]+)(?=[CV]|$)", e.get("d"))]
        assert ys == sorted(ys)                     # edges go down


def test_a_chain_is_straight():
    sheet = Sheet(chain(300))
    xs = [b.node.x for b in sheet.boxes]
    assert max(xs) - min(xs) < 60


def lines(f):
    """How many lines of Python f() executes."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try: f()
    finally: sys.settrace(before)
    return count


@pytest.mark.parametrize("make", [mlp, lambda n: chain(6 * n), lambda n: random_net(1, 6 * n)])
def test_the_work_of_a_drawing_grows_with_the_net(make):
    """Four times the operators take little more than four times the work, and a large net is drawn whole."""
    small, large = (lines(make(n).to_svg) for n in (20, 80))
    assert large < 5 * small
    net = make(330)
    assert len(classes(drawn(net), "box")) == len(net)


HOSTILE = ["<script>alert(1)</script>", "\"><svg onload=x>", "'", "&lt;", "]]>", "\\N", "a\\", "\\\"", "-->", "x\u0301",
           "名前", "javascript:x", "\U0001f600", "{a|b}", "%20#"]


def test_hostile_names_are_only_text():
    net = Net(HOSTILE[0])
    for name in HOSTILE: net.add_operator(Operator(name, [name], [name + " out"], {"p": name}, name))
    root = drawn(net)
    assert {*HOSTILE} <= {*texts(root)}
    assert {e.tag.removeprefix(SVG) for e in root.iter()} == {"svg", "title", "style", "rect", "text", "path", "g"}
    assert not [key for e in root.iter() for key in e.keys() if key.startswith("on")]
    assert "<script" not in net.to_svg()


def strings_of_dot(text):
    """The strings of a text in DOT, without their escapes; what is left of the text must be plain."""
    string = r'"((?:[^"\\]|\\.)*)"'
    assert re.fullmatch(r"[\w\s\[\]{};=,>.-]*", re.sub(string, "", text, flags=re.DOTALL))
    return [re.sub(r"\\([\"\\])", r"\1", s) for s in re.findall(string, text, re.DOTALL)]


def test_dot():
    net = Net()
    net.conv2d(["x", "w"], "y", stride=2)
    net.relu("y", "y")
    text = net.to_dot()
    assert text.startswith('digraph "net" {\n') and text.endswith("}\n")
    assert r'o0 [shape=box, style=filled, fillcolor="#dbe7f3", label="conv2d\nstride=2"' in text
    assert "o0 -> b2;" in text and "b2 -> o1;" in text and "b0 -> o0;" in text
    for hostile in HOSTILE:
        net = Net(hostile)
        net.add_operator(hostile, hostile, hostile + " out", p=hostile)
        found = strings_of_dot(net.to_dot())
        assert found.count(hostile) >= 2 and any(s.startswith(hostile + "\\n") or "p=" in s for s in found)


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_graphviz_reads_dot():
    for seed in range(10):
        subprocess.run(["dot", "-Tsvg"], input=random_net(seed).to_dot().encode(), check=True, capture_output=True)


def test_files(tmp_path):
    net = mlp(1)
    net.draw(tmp_path / "n.svg")
    net.draw(str(tmp_path / "n.DOT"))
    assert (tmp_path / "n.svg").read_text() == net.to_svg() == net.to_svg(tmp_path / "m.svg")
    assert (tmp_path / "n.DOT").read_text() == net.to_dot() and (tmp_path / "m.svg").read_text() == net.to_svg()
    with pytest.raises(ValueError, match=".svg or .dot"): net.draw(tmp_path / "n.png")
    with pytest.raises(FileNotFoundError): net.draw(tmp_path / "no" / "n.svg")


def test_light_and_dark():
    text = mlp(1).to_svg()
    light, dark = text[text.index("<style>"):text.index("</style>")].split("@media (prefers-color-scheme: dark)")
    for name in ("paper", "box", "box.gradient", "oval", "oval.constant", "oval.input", "soft"):
        assert f".cygrad-net .{name} {{" in light and f".cygrad-net .{name} {{" in dark
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_ids_of_two_drawings_differ():
    a, b = mlp(1), chain(3)
    ids = [{e.get("id") for e in drawn(net).iter() if e.get("id")} for net in (a, b)]
    assert ids[0] and ids[1] and not ids[0] & ids[1]


# ---- layers ----------------------------------------------------------------------------------------------------------

def test_layers_are_longest_paths():
    assert longest_paths([[], [0], [0], [1, 2], [0, 3], []]) == [0, 1, 1, 2, 3, 0]


def linked(edges, sizes):
    nodes = [[Vertex(10, k) for _ in range(n)] for k, n in enumerate(sizes)]
    for (i, a), (j, b) in edges: assert not bends(nodes[i][a], nodes[j][b], 2) or j - i > 1
    return [n for layer in nodes for n in layer]


def test_crossings_are_counted_and_reduced():
    edges = [((0, a), (1, b)) for a, b in [(0, 3), (1, 2), (2, 1), (3, 0)]]
    nodes = linked(edges, [4, 4])
    before = [nodes[:4], nodes[4:]]
    for layer in before:
        for k, n in enumerate(layer): n.order = k
    assert crossings(before) == 6
    assert crossings(arrange(nodes, 5)) == 0
    complete = linked([((0, a), (1, b)) for a in range(3) for b in range(3)], [3, 3])
    assert crossings(arrange(complete, 5)) == 9


def test_arranged_nodes_keep_their_distance():
    nodes = linked([((0, 0), (1, k)) for k in range(5)] + [((1, k), (2, 0)) for k in range(5)], [1, 5, 1])
    layers = arrange(nodes, 7)
    for layer in layers:
        for a, b in zip(layer, layer[1:], strict=False): assert b.x - a.x >= 17 - 1e-9
    assert layers[0][0].x == pytest.approx(layers[1][2].x) == pytest.approx(layers[2][0].x)
    assert min(n.x - n.width / 2 for n in nodes) == pytest.approx(0)
