"""Before the tests are collected, what is generated and not in git is written again if a source is newer: the stubs of
modules that are not public, and the pages of docs/ that test_docs.py reads like any other."""

import subprocess
import sys
from pathlib import Path

import pytest
from browser import Browser, serving

ROOT = Path(__file__).resolve().parents[2]
STAMP = ROOT / "build" / "generated"                # as in the Makefile


def stale():
    if not STAMP.exists(): return True
    sources = (path for folder in ("cygrad", "tools", "tests/samples") for path in (ROOT / folder).rglob("*"))
    return any(path.suffix in (".py", ".so") and path.stat().st_mtime > STAMP.stat().st_mtime for path in sources)


if stale():
    for command in (["make_stubs.py", "--build"], ["make_docs.py", "--build"]):
        subprocess.run([sys.executable, ROOT / "tools" / command[0], *command[1:]], check=True)
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.touch()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    for domain in ("Page", "Network", "Runtime", "Log"): browser.call(f"{domain}.enable")
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def served():
    """The address of a server of docs/, whose figures are pages of their own."""
    with serving(ROOT / "docs") as address: yield address


@pytest.fixture
def figure(served, browser):
    """figure(name) opens a figure, and returns a function that sets controls and returns the text of the figure."""
    def opened(name):
        browser.open(f"{served}_static/{name}.html")

        def told(**controls):
            for control, value in controls.items():
                browser.run(f"input('{control}').value = '{value}'; "
                            f"input('{control}').dispatchEvent(new Event('input'))")
            return browser.run("input('text').textContent")

        return told

    return opened
