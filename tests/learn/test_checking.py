"""A reader's file meets its check: what is said about each kind of failure."""

import re
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad.learn import course
from cygrad.learn.checking import Wrong, equal, expect, judge, shown

MEAN = course.find("ch29a")
GIVEN = MEAN.file.read_text()


def judged(tmp_path, text):
    path = tmp_path / MEAN.file.name
    path.write_text(text)
    return judge(path, MEAN)


def test_a_syntax_error_is_shown_with_its_line(tmp_path):
    verdict = judged(tmp_path, '"""x"""\n\ndef mean(means, rows):\n    return sum(means\n')
    assert verdict == ("syntax", "Python cannot read line 4: '(' was never closed\n        return sum(means\n"
                                 "                  ^")
    assert judged(tmp_path, "def mean(means, rows):\nreturn 1\n")[0] == "syntax"
    state, text = judged(tmp_path, "x = 1\n\0\n")
    assert state == "syntax" and re.match(r"Python cannot read .*null bytes", text)
    (tmp_path / "other.py").write_bytes(b"x = '\xff'\n")
    state, text = judge(tmp_path / "other.py", MEAN)
    assert state == "syntax" and text.startswith("Python cannot read line 1: ") and "'utf-8' codec" in text
    (tmp_path / "broken.py").write_text("def (\n")
    state, text = judged(tmp_path, f"import sys\nsys.path.append({str(tmp_path)!r})\nimport broken\n")
    sys.path.pop()
    assert state == "error" and text.endswith("    line 3, in <module>: import broken")


def test_an_exception_is_shown_with_the_line_of_the_file(tmp_path):
    state, text = judged(tmp_path, "def mean(means, rows):\n    return helped(means)\n\n\n"
                                   "def helped(x):\n    return x / 2\n")
    assert state == "error"
    assert text == ("TypeError: unsupported operand type(s) for /: 'list' and 'int'\n"
                    "    line 6, in helped: return x / 2")
    state, text = judged(tmp_path, "import sys\nsys.exit(0)\n")
    assert (state, text) == ("error", "SystemExit: 0\n    line 2, in <module>: sys.exit(0)")
    state, text = judged(tmp_path, "def mean(means, rows): return mean(means, rows)\n")
    assert state == "error" and text.startswith("RecursionError: ")


def test_a_value_that_the_check_cannot_read(tmp_path):
    class Odd:
        def __array__(self): raise ValueError("no numbers")

    state, text = judged(tmp_path, "class Odd:\n    pass\n\n\ndef mean(means, rows): return Odd()\n")
    assert state == "wrong" and " is <" in text
    with pytest.raises(Wrong, match="x is <"): equal("x", Odd(), 1.0, "")


def test_a_name_that_is_gone_and_a_return_that_is_missing(tmp_path):
    assert judged(tmp_path, "def average(means, rows): return 1\n").text.startswith("The file has no `mean` any more")
    assert judged(tmp_path, "def mean(means, rows): pass\n").text.startswith("mean returns None")


def test_a_file_that_is_not_there(tmp_path):
    state, text = judge(tmp_path / "none.py", MEAN)
    assert state == "missing" and text.endswith("none.py cannot be read: No such file or directory")


def test_state_is_restored(tmp_path):
    threads, modules = cg.get_num_threads(), set(sys.modules)
    text = "import cygrad as cg\nassert cg.get_num_threads() == 1\ncg.set_num_threads(2)\n"
    assert judged(tmp_path, text + GIVEN).state == "wrong"
    assert cg.get_num_threads() == threads and not any("ch29a" in name for name in set(sys.modules) - modules)


def test_a_dataclass_can_be_defined(tmp_path):
    """(dataclasses look for their module in sys.modules.)"""
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\nclass P:\n    x: int\n"
    assert judged(tmp_path, text + GIVEN).state == "wrong"


@pytest.mark.parametrize(("got", "right", "said"), [
    (1.0, 2.0, "x is 1, but 2 is right"),
    ([1, 2], (1, 3), "x is [1, 2], but [1, 3] is right"),
    (len, 3, "x is <built-in function len>, but 3 is right"),
    ("a", "b", "x is 'a', but 'b' is right"),
    (None, 1.0, "x is None, but 1 is right"),
    (np.zeros((2, 3)), np.zeros(3), "x has shape (2, 3), but (3,) is right"),
    (np.zeros(20), np.arange(20.0), "x is 0 at [1], but 1 is right (19 of 20 elements differ)"),
    ([0.5, np.nan], [0.5, 1.0], "x is [0.5, nan], but [0.5, 1] is right"),
    ({"a": 1}, {"a": 2}, "x is {'a': 1}, but {'a': 2} is right"),
    (True, False, "x is True, but False is right"),
])
def test_what_equal_says(got, right, said):
    with pytest.raises(Wrong) as caught: equal("x", got, right, "Look.")
    assert str(caught.value) == f"{said}. Look."


def test_what_is_equal():
    equal("x", cg.ones(3), np.ones(3), "")
    equal("x", cg.ones(3).attach_grad(), [1, 1, 1.00001], "")
    equal("x", [(1, 2), (3, 4)], [(1, 2), (3, 4)], "")
    equal("x", [np.nan], [np.nan], "")
    equal("x", [], [], "")
    equal("x", {"a"}, {"a"}, "")
    with pytest.raises(Wrong): equal("x", np.float32(1.0000001), np.float32(1.0), "", rtol=0)
    expect(True, "")


def test_a_mistake_with_a_known_cause():
    for got, said in ((4.0, "Twice."), (9.0, "Look."), (0.0, "Nothing.")):
        with pytest.raises(Wrong) as caught:
            equal("x", got, 2.0, "Look.", [(4.0, "Twice."), (0, "Nothing."), (np.zeros(3), "An array.")])
        assert str(caught.value).endswith(said)
    assert shown("x" * 200) == repr("x" * 200)[:97] + "..." and shown(np.float32(0.1)) == "0.1"
