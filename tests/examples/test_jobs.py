"""The small programs of examples/: each learns and writes its files, and complains if it has not learned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = {"picture.png", "memory.txt", "memory.html"}
JOBS = {"digits_cnn": ("--epochs", "test digits are wrong; it should be at most 4%"),
        "physics_informed": ("--steps", "c is 0.000; it should be within 0.06 of 0.6"),
        "gaussian_process": ("--steps", "it should be within 30 % of 0.15"),
        "fixed_point": ("--epochs", "of the test digits are wrong; it should be at most 5 %"),
        "tiny_gpt": ("--steps", "nats for a letter; pairs of letters have"),
        "pendulum": ("--steps", "k is 3.000; it should be within 5 % of 4.0"),
        "vae": ("--epochs", "3 more than the mean image has")}
each_job = pytest.mark.parametrize("name", JOBS)

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")


def run(name, folder, *options):
    return subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", "--output", folder, *options],
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


@each_job
def test_it_learns(name, tmp_path):
    done = run(name, tmp_path / "out")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert {p.name for p in (tmp_path / "out").iterdir()} >= FILES
    picture = (tmp_path / "out" / "picture.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000
    assert "\npeak: " in done.stdout and "<html" in (tmp_path / "out" / "memory.html").read_text()


@each_job
def test_without_training_it_complains(name, tmp_path):
    option, complaint = JOBS[name]
    done = run(name, tmp_path / "out", option, "0")
    assert done.returncode == 1 and complaint in done.stderr
    assert all(line.startswith("not learned: ") for line in done.stderr.splitlines())
    assert {p.name for p in (tmp_path / "out").iterdir()} >= FILES


def test_an_interrupted_run_goes_on(tmp_path):
    """digits_cnn.py --resume: the last epoch, once more from the checkpoint before it, gives the same parameters."""
    run("digits_cnn", tmp_path, "--epochs", "2")
    first, last = sorted((tmp_path / "run").glob("checkpoint*"))
    parameters = tmp_path / "run" / "params_000045.safetensors"
    expected = parameters.read_bytes()
    last.unlink()
    parameters.unlink()
    run("digits_cnn", tmp_path, "--epochs", "2", "--resume")
    assert parameters.read_bytes() == expected and last.exists() and first.exists()
