"""examples/character_transformer.py and character_lstm.py, and the text and n-grams that they share."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = {"samples.txt", "picture.png", "memory.txt", "memory.html"}
each_program = pytest.mark.parametrize("name", ["character_transformer", "character_lstm"])

pytest.importorskip("matplotlib")


@pytest.fixture
def text(monkeypatch):
    """The module examples/text.py."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield __import__("text")
    for name in ("text", "character_lstm"): sys.modules.pop(name, None)


def run(name, folder, *options):
    return subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", "--quick", "--output", folder, *options],
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


@each_program
def test_it_learns(name, tmp_path):
    done = run(name, tmp_path / "out")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES
    assert "3-grams: " in done.stdout and "memory of one update\npeak: " in done.stdout
    assert len((tmp_path / "out" / "samples.txt").read_text()) > 2000


@each_program
def test_without_training_it_complains(name, tmp_path):
    done = run(name, tmp_path / "out", "--steps", "0")
    assert done.returncode == 1
    bits, words = done.stderr.splitlines()
    assert bits.startswith("not learned: a held-out character takes ") and bits.endswith("0.05 below 3-grams")
    assert words.startswith("not learned: ") and words.endswith("it should be at least 25%")
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES


def test_the_text(text):
    training, held_out = text.load()
    assert 5e4 < len(training) and 0.03 < len(held_out) / len(training) < 0.2
    parts = [text.decode(codes).split("\n") for codes in (training, held_out)]
    assert not {*parts[0]} & {*parts[1]} and all(len(p) == len({*p}) for p in parts)
    np.testing.assert_array_equal(text.encode(text.decode(held_out)), held_out)


def test_windows(text):
    codes = np.arange(12)
    assert text.windows(codes, 3, 3).tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert np.shares_memory(text.windows(codes, 3, 1), codes)


def test_streams_go_on_where_they_were(text):
    from character_lstm import streams

    rows = streams(np.arange(26), 2, 4).reshape(-1, 2, 5)           # windows, streams, codes
    assert rows.tolist() == [[[0, 1, 2, 3, 4], [12, 13, 14, 15, 16]], [[4, 5, 6, 7, 8], [16, 17, 18, 19, 20]],
                             [[8, 9, 10, 11, 12], [20, 21, 22, 23, 24]]]


def test_n_grams(text):
    """The probabilities add up to 1, and those of two orders are as computed by hand."""
    codes = text.encode("abababac")
    grams = text.NGrams(codes)
    contexts = text.encode("zzzzzababa").reshape(2, 5)              # after z, and after a
    found = [*grams.probabilities(contexts)]
    assert len(found) == text.ORDERS
    for p in found: np.testing.assert_allclose(p.sum(1), 1)
    a, b = text.encode("ab")
    n, unigram = len(text.SYMBOLS), found[0][:, a]                  # a: 4 of 8, and 3 different characters
    np.testing.assert_allclose(unigram, (4 + 3 / n) / (8 + 3))
    np.testing.assert_allclose(found[1][1, b], (3 + 2 * found[0][1, b]) / (4 + 2))  # after a: 3 times b, once c
    np.testing.assert_allclose(found[1][0], found[0][0])            # z was never seen
    assert grams.bits(text.encode("abababab"))[1] < grams.bits(text.encode("aabbaabb"))[1]
