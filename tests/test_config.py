"""show_config reports the actual configuration."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import cygrad as cg
from cygrad.kernels import cpu, driver


def test_as_dicts(capsys):
    found = cg.show_config(mode="dicts")
    assert capsys.readouterr().out == ""
    assert list(found) == ["Versions", "Build", "BLAS", "Machine", "Settings", "Environment"]
    assert found["Versions"] == {"cygrad": cg.__version__, "python": sys.version.split()[0],
                                 "numpy": version("numpy"), "scipy": version("scipy")}
    assert found["Settings"] == {"threads": cg.get_num_threads(), "kernels for": driver.level(),
                                 "products by": "cygrad", "default dtype": "float32"}
    assert re.match(r"(gcc|clang|MSVC) \d", found["Build"]["compiler"])
    assert found["Machine"]["instruction level"] in cpu.LEVELS
    assert found["Machine"]["CPUs"] >= 1 and "blas" in found["BLAS"]["name"].lower()


def test_as_text(capsys):
    assert cg.show_config() is None
    text = capsys.readouterr().out
    for part, values in cg.show_config("dicts").items():
        assert f"{part}:\n" in text
        assert all(re.search(rf"^  {name}: ", text, re.M) for name in values)
    assert re.search(r"^  openmp: +(yes|no)$", text, re.M)


def test_every_switch_that_the_package_reads_is_shown():
    package = Path(cg.__file__).parent
    read = {name for path in [*package.rglob("*.py"), *package.rglob("*.pyx")] if path.name != "config.py"
            for name in re.findall(r"environ[^\n]*?\"(CYGRAD_\w+)\"", path.read_text())}
    assert read == set(cg.show_config("dicts")["Environment"])
    code = "import cygrad as cg; cg.show_config()"
    chosen = dict.fromkeys(read, "1") | {"CYGRAD_LEVEL": "baseline", "CYGRAD_BLAS": "own"}
    said = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True,
                          env=os.environ | chosen).stdout
    assert all(re.search(rf"^  {name}: +{value} ", said, re.M) for name, value in chosen.items())
    assert re.search("^  kernels for: +baseline$", said, re.M)
    assert re.search("^  threads: +1$", said, re.M)
