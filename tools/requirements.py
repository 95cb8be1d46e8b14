"""Print the packages that pip must install for an in-place build: python tools/requirements.py build|run|EXTRA
[PACKAGE ...]

`build` prints the requirements of the build without those of cygrad, which only the build of a wheel needs; `run`
prints those of cygrad, and the name of an extra both and the extra's own, without the named packages. All are read from
pyproject.toml. The build requires little, so compiling can begin before the rest is installed."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parent.parent.joinpath("pyproject.toml").read_text())


def needs(which, without):
    build, run = PROJECT["build-system"]["requires"], PROJECT["project"]["dependencies"]
    if which == "build": found = {*build} - {*run}
    elif which == "run": found = {*run}
    else: found = {*build, *run, *PROJECT["project"]["optional-dependencies"][which]}
    return sorted(need for need in found if re.match(r"[\w-]+", need)[0] not in without)


if __name__ == "__main__":
    print("\n".join(needs(sys.argv[1], sys.argv[2:])))
