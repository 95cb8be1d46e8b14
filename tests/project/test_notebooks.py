"""What Jupyter shows: HTML of tensors, tapes, nets, plans, profiles and histories."""

from html.parser import HTMLParser

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Net
from cygrad.trainers import History

BAD = "</pre></title><script>alert(1)</script><b title='"


class Reader(HTMLParser):
    """The tags and the text of HTML whose tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words, self.pages = [], [], "", []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.pages += [value for name, value in attrs if name == "srcdoc"]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag, attrs): self.tags.append(tag)

    def handle_endtag(self, tag): assert self.open.pop() == tag

    def handle_data(self, text): self.words += text


def shown(x):
    reader = Reader(x._repr_html_())
    assert "script" not in reader.tags
    return reader


def test_a_tensor_is_shown_with_what_it_is():
    reader = shown(cg.tensor([[1.5, -2.0]], dtype="float64"))
    assert reader.words == "tensor (1, 2) float64, 16 bytes[[ 1.5, -2. ]]" and reader.tags == ["div", "b", "pre"]
    assert "(0, 3) int8, 0 bytes" in shown(cg.zeros((0, 3), dtype="int8")).words
    assert shown(cg.tensor(7)).words == "tensor () int64, 8 bytes7"
    large = shown(cg.arange(1_000_000)).words
    assert "8,000,000 bytes" in large and "999999" in large and len(large) < 200
    many = shown(cg.zeros((2,) * 16)).words         # NumPy shortens no dimension of size 2
    assert "262,144 bytes; its part [0, 0, 0, 0, 0, 0, 0, 0]:[[[" in many and len(many) < 8000
    images = shown(cg.zeros((64, 3, 32, 32))).words
    assert "; its part [0]:[[[0., 0., 0., ..., 0., 0., 0.]" in images and len(images) < 2000
    w = cg.ones(2, requires_grad=True)
    with cg.record():
        y = w * 2
        assert shown(w).words.endswith("requires_grad=True[1., 1.]") and "grad_fn=<mul>[2., 2.]" in shown(y).words
    assert cg.memory.stats()["live_bytes"] == w.nbytes + y.nbytes       # (also in the graph: nothing was kept)


def test_values_that_are_not_there_are_not_shown():
    seen = []

    def f(x):
        seen.append(shown(x).words)
        return x * 2

    Net.capture(f, ((3,), "float32"))
    cg.func.vmap(f)(cg.ones((2, 3)))
    cg.func.jvp(f, (cg.ones(3),), (cg.ones(3),))
    facts = "tensor (3,) float32, 12 bytes"
    assert seen == [f"{facts}, no values", f"{facts}, no values", f"{facts}, with a tangent"]
    assert shown(cg.ones(3)).words == f"{facts}[1., 1., 1.]"
    with cg.memory.scope(): freed = cg.ones(2)
    with pytest.raises(RuntimeError, match="free"): freed._repr_html_()     # (IPython then shows repr, which says so)


def test_names_of_users_are_escaped():
    w = cg.ones(2, requires_grad=True)
    kind = type(BAD, (cg.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2),
                                               "backward": staticmethod(lambda ctx, g: g * 2)})
    with cg.record() as tape: y = kind.apply(w)
    assert "script" in shown(y).words and "script" in shown(tape).words
    history = History()
    history.rows = [{"epoch": 1, BAD: 0.5}, {"epoch": 2, "text": BAD, "none": None}]
    assert shown(history).words.count("script") == 4
    net = Net(BAD)
    net.exp("x", "y")
    assert "script" in shown(net).words
    assert "script" in shown(net.plan({"x": ((3,), "float32")})).words
    with cg.memory.profile() as p: exec(compile("x = cg.ones(3)", BAD + ".py", "exec"), {"cg": cg})
    (page,) = shown(p).pages
    assert "<script>alert" not in page


def test_a_tape_lists_its_operations():
    x = cg.ones(1000, requires_grad=True)
    with cg.record() as tape:
        y = cg.exp(x)
        with cg.record(): z = cg.exp(y * y) + y
    reader = shown(tape)
    assert tape.nodes == 4 and tape.saved_bytes == 8000
    assert repr(tape) == "<Tape: 4 operations, 8,000 bytes saved for backward>"
    assert reader.words == ("Tape 4 operations, 8,000 bytes saved for backward" "operationnumberbytes"
                            "exp28,000" "mul10" "add10")
    z.backward(cg.ones(1000))
    assert "0 bytes" in shown(tape).words


def test_a_net_and_its_plan_are_drawn():
    net = Net("small")
    net.sum(net.exp("x"), "y")
    reader = shown(net)
    assert "svg" in reader.tags and net.text() in reader.words
    drawn = shown(net.plan({"x": ((300,), "float32")}))
    assert "svg" in drawn.tags and "2 steps" in drawn.words
    for _ in range(200): net.exp("x")
    assert "svg" not in shown(net).tags and net.text() in shown(net).words and "svg" in shown(Net("empty")).tags


def test_a_profile_is_its_page(tmp_path):
    p = cg.memory.profile()
    assert p._repr_html_() is None
    with p: x = cg.ones(1000)
    (page,) = shown(p).pages
    p.save(tmp_path / "page.html")
    assert page == (tmp_path / "page.html").read_text() and x.nbytes == p.peak_bytes


def test_a_history_is_a_table():
    history = History()
    history.rows = [{"epoch": i, "loss": np.float64(1 / i), "note": "a"} for i in range(1, 61)]
    reader = shown(history)
    assert reader.words.startswith("History 60 epochs, the last 50epochlossnote110.0909091a120.0833333a")
    assert reader.tags.count("tr") == 51


def test_ipython_shows_it():
    """The formatter of IPython takes the HTML, and the text of what has none."""
    formatters = pytest.importorskip("IPython.core.formatters")
    formatter = formatters.HTMLFormatter()
    assert formatter(cg.ones(2)) == cg.ones(2)._repr_html_() and formatter(cg.memory.profile()) is None
    with cg.memory.scope(): freed = cg.ones(2)
    assert formatter(freed) is None
    assert "Net" in formatter(Net("n"))
