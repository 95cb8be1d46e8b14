"""Print what pip is to install for a tree that is built in place: python tools/requirements.py build|run|EXTRA

`build` is what the build needs, `run` what cygrad needs, an extra both and what it names, all of it read from
pyproject.toml. The build needs little, so that compiling can begin before the rest is installed."""

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parent.parent.joinpath("pyproject.toml").read_text())

build, run = PROJECT["build-system"]["requires"], PROJECT["project"]["dependencies"]
which = sys.argv[1]
if which == "build": needs = build
elif which == "run": needs = run
else: needs = [*build, *run, *PROJECT["project"]["optional-dependencies"][which]]
print("\n".join(sorted(set(needs))))
