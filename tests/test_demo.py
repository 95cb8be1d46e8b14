"""The demo as users start it: a process, its output, its picture, and a one-line error for every mistake."""

import os
import re
import subprocess
import sys

import pytest

import cygrad as cg

CATEGORIES = ("parameters", "gradients", "saved", "optimizer", "workspace", "other")
# bytes of the MLP 64-128-64-10, by layer; of the CNN, each convolution followed by the weight and bias of BatchNorm2d
FIRST, SECOND, THIRD = (4 * (n_in * n_out + n_out) for n_in, n_out in ((64, 128), (128, 64), (64, 10)))
WEIGHTS = FIRST + SECOND + THIRD
CNN_WEIGHTS = 4 * ((1 * 9 * 16 + 3 * 16) + (16 * 9 * 32 + 3 * 32) + (32 * 9 * 64 + 3 * 64) + (256 * 10 + 10))


def run(*arguments, cwd=None, **environment):
    """Run `python -m cygrad` with `arguments`. Warnings are errors."""
    return subprocess.run([sys.executable, "-W", "error", "-m", "cygrad", *map(str, arguments)], cwd=cwd, text=True,
                          capture_output=True, timeout=120, env=os.environ | environment)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo with default settings, except for the path of the picture."""
    picture = tmp_path_factory.mktemp("demo") / "made" / "picture.png"
    result = run("demo", "--output", picture)
    assert result.returncode == 0, result.stderr
    return result, picture


@pytest.fixture(scope="module")
def cnn(tmp_path_factory):
    """The demo of the CNN with default settings, except for the path of the picture."""
    picture = tmp_path_factory.mktemp("demo") / "cnn.png"
    result = run("demo", "--model", "cnn", "--output", picture)
    assert result.returncode == 0, result.stderr
    return result, picture


def numbers(output):
    """The memory table of the demo's output, as a dict."""
    return {name: int(n.replace(",", "")) for name, n in re.findall(r"^  (\w+) +([\d,]+) +[\d.]+%$", output, re.M)}


@pytest.mark.parametrize(("name", "least"), [("demo", 97), ("cnn", 98.5)])
def test_learns(request, name, least):
    result, _ = request.getfixturevalue(name)
    percent, right, of = re.search(r"test accuracy +([\d.]+)% \((\d+) of (\d+)\)", result.stdout).groups()
    assert float(percent) >= least
    assert of == "360" and abs(100 * int(right) / int(of) - float(percent)) < 0.01


def test_speed_and_progress(demo):
    result, _ = demo
    rate, steps, seconds = re.search(r"steps per second ([\d,]+) \((\d+) steps in ([\d.]+) s\)", result.stdout).groups()
    assert int(steps) == 30 * 23                    # 1437 images in batches of 64
    assert float(rate.replace(",", "")) == pytest.approx(int(steps) / float(seconds), rel=0.05)
    assert "690/690" in result.stderr and "loss=" in result.stderr         # the progress bar


def test_memory_table(demo):
    bytes_of = numbers(demo[0].stdout)
    assert tuple(bytes_of) == (*CATEGORIES, "peak")
    assert sum(bytes_of[name] for name in CATEGORIES) == bytes_of["peak"]
    assert bytes_of["parameters"] == WEIGHTS
    assert bytes_of["optimizer"] == 2 * WEIGHTS     # Adam's m and v
    assert bytes_of["gradients"] >= SECOND + THIRD
    assert bytes_of["other"] + bytes_of["workspace"] <= 0.05 * bytes_of["peak"]
    batch = int(re.search(r"the batch, ([\d,]+) bytes", demo[0].stdout)[1].replace(",", ""))
    assert batch == 64 * (64 * 4 + 8)               # images and labels, in NumPy's memory


def test_memory_by_hand(demo):
    """The peak is in the backward of the second linear layer, with its input and both gradients: 64 rows of 128, 64 and
    128 floats. The first layer has no gradient yet."""
    peak = numbers(demo[0].stdout)["peak"]
    assert peak == 3 * WEIGHTS + SECOND + THIRD + 64 * 4 * (128 + 64 + 128) + 4     # and the loss


def test_memory_table_of_the_cnn(cnn):
    bytes_of = numbers(cnn[0].stdout)
    assert tuple(bytes_of) == (*CATEGORIES, "peak")
    assert sum(bytes_of[name] for name in CATEGORIES) == bytes_of["peak"]
    assert bytes_of["parameters"] == CNN_WEIGHTS and bytes_of["optimizer"] == 2 * CNN_WEIGHTS
    running = (16 + 32 + 64) * 2 * 4 + 3 * 8        # means, variances and the counts of batches
    assert bytes_of["other"] == running + 4         # and the loss
    assert bytes_of["saved"] > bytes_of["parameters"] + bytes_of["optimizer"]      # unlike the MLP's
    assert "CNN of three convolutions, Adam, batch 64, 30 epochs, seed 0" in cnn[0].stdout


@pytest.mark.parametrize("name", ("demo", "cnn"))
def test_picture(request, name):
    result, path = request.getfixturevalue(name)
    picture = path.read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[at:at + 4], "big") for at in (16, 20))
    assert (width, height) == (1950, 780)
    assert str(path) in result.stdout


def test_options(tmp_path):
    """Another batch size, thread count, seed and output path. The same seed gives the same numbers."""
    options = ("--epochs", 2, "--batch-size", 100, "--threads", 1, "--seed", 5)
    first = run("demo", *options, "--output", tmp_path, cwd=tmp_path)
    again = run("demo", *options, "--output", tmp_path / "again.svg", cwd=tmp_path)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert "batch 100, 2 epochs, seed 5, threads 1" in first.stdout
    assert "(30 steps" in first.stdout
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert (tmp_path / "again.svg").read_text().startswith("<?xml")
    accuracy = re.compile(r"test accuracy.*")
    assert accuracy.search(first.stdout)[0] == accuracy.search(again.stdout)[0]
    assert numbers(first.stdout) == numbers(again.stdout)
    other = run("demo", *options[:-1], 6, "--output", tmp_path, cwd=tmp_path)
    assert re.search(r"loss=[\d.]+\]\s*$", other.stderr)[0] != re.search(r"loss=[\d.]+\]\s*$", first.stderr)[0]


def test_output_where_we_are(tmp_path):
    result = run("demo", "--epochs", 1, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "digits.png").exists()


def test_help():
    result = run("demo", "--help")
    assert result.returncode == 0 and not result.stderr
    for option in ("--model", "--epochs", "--batch-size", "--threads", "--seed", "--output"):
        assert option in result.stdout
    assert "pip install cygrad[demo]" in " ".join(result.stdout.split())
    assert "demo" in run("--help").stdout


def test_version():
    result = run("--version")
    assert result.returncode == 0 and result.stdout == f"cygrad {cg.__version__}\n" and not result.stderr


def errs(*arguments, cwd=None):
    """The one-line error of `python -m cygrad`."""
    result = run(*arguments, cwd=cwd)
    assert result.returncode == 2
    assert not result.stdout
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n"), result.stderr
    return result.stderr.strip()


@pytest.mark.parametrize(("option", "least", "values"), [
    ("--epochs", 1, ("0", "-3", "2.5", "many", "")),
    ("--batch-size", 1, ("0", "x")),
    ("--threads", 1, ("0", "two")),
    ("--seed", 0, ("-1", "1e3")),
])
def test_wrong_numbers(option, least, values):
    for value in values:
        assert errs("demo", f"{option}={value}") == (
            f"python -m cygrad demo: error: argument {option}: must be an int of at least {least}, got {value!r}")


def test_wrong_words(tmp_path):
    assert errs("demo", "--epoch", "1", "x") == "python -m cygrad: error: unrecognized arguments: x"
    assert errs("demo", "--model", "rnn").startswith(
        "python -m cygrad demo: error: argument --model: invalid choice: 'rnn'")
    assert errs("demo", "--epochs") == "python -m cygrad demo: error: argument --epochs: expected one argument"
    assert errs() == "python -m cygrad: error: the following arguments are required: command"
    assert errs("train").startswith("python -m cygrad: error: argument command: invalid choice: 'train'")


def test_wrong_sizes_and_places(tmp_path):
    start = "python -m cygrad demo: error: "
    assert errs("demo", "--batch-size", 1438, cwd=tmp_path) == (
        start + "--batch-size 1438: there are only 1437 training images")
    assert errs("demo", "--output", "x.txt", cwd=tmp_path) == (
        start + "--output x.txt: the picture must be one of .png, .svg, .pdf, not .txt")
    (tmp_path / "file").write_text("")
    assert errs("demo", "--output", "file/x.png", cwd=tmp_path) == (
        start + "--output file/x.png: file cannot be written into")
    (tmp_path / "x.png").mkdir()
    (tmp_path / "x.png" / "digits.png").mkdir()
    assert errs("demo", "--output", "x.png", cwd=tmp_path) == (
        start + "--output x.png: x.png/digits.png cannot be written to")
    assert errs("demo", "--output", "x" * 300 + ".png") == start + f"--output {'x' * 300}.png: File name too long"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("module", "name"), [("tqdm", "tqdm"), ("sklearn", "scikit-learn"),
                                              ("matplotlib", "matplotlib")])
def test_missing_packages(tmp_path, module, name):
    """The error names the missing package and the command that installs it."""
    (tmp_path / f"{module}.py").write_text("raise ImportError")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    result = run("demo", cwd=tmp_path, PYTHONPATH=path)
    assert result.returncode == 2
    assert result.stderr == (f"python -m cygrad demo: error: the demo needs {name}, which is not installed: "
                             f"pip install cygrad[demo]\n")
    assert run("demo", "--help", PYTHONPATH=path).returncode == 0
