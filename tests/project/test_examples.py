"""docs/examples: each example of the reference gives what it shows and leaves no tensor."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

spec = importlib.util.spec_from_file_location("doc_examples", ROOT / "tools" / "doc_examples.py")
examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(examples)
ENTRIES = examples.entries()


@pytest.mark.parametrize(("names", "text"), ENTRIES, ids=[",".join(names) for names, _ in ENTRIES])
def test_an_example_gives_what_it_shows(names, text):
    assert not (said := examples.run(names, text)), said
    for name in names:
        last = name.rpartition(".")[2].lower()
        assert last in text.lower() or last == "forward", f"{name} is not used"         # a call of a layer runs forward


def test_a_name_has_one_example():
    names = [name for names, _ in ENTRIES for name in names]
    assert sorted({*names}) == sorted(names)


def test_wrong_examples_are_noticed(tmp_path):
    page = tmp_path / "page.txt"
    page.write_text("cygrad.ones\ncygrad.zeros\n    >>> cg.ones(2).tolist()\n    [1.0, 1.0]\n\n"
                    "cygrad.exp\n    >>> cg.exp(0.0).item()\n    2.0\n\ncygrad.log\n    no prompt\n")
    right, wrong, empty = examples.read(page)
    assert right[0] == ["cygrad.ones", "cygrad.zeros"] and examples.run(*right) == ""
    assert "Expected:\n    2.0\nGot:\n    1.0" in examples.run(*wrong)
    assert examples.run(*empty) == "cygrad.log has no example"
    page.write_text(page.read_text() + "  >>> 1\n")
    with pytest.raises(ValueError, match="page.txt: a line is neither"): examples.read(page)
