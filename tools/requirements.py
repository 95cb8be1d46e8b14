"""Print what pip is to install before a tree can be built in place: python tools/requirements.py [EXTRA ...]

That is what the build and cygrad itself need and what the extras name, all of it read from pyproject.toml."""

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parent.parent.joinpath("pyproject.toml").read_text())

needs = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
for extra in sys.argv[1:]: needs += PROJECT["project"]["optional-dependencies"][extra]
print("\n".join(sorted(set(needs))))
