"""docs/learn.md: its lines for the shell, in order, print what it shows."""

import re
import subprocess
import sys
from pathlib import Path

from cygrad.learn import course

PAGE = Path(__file__).parents[2] / "docs" / "learn.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def followed(page, place):
    """Do in the folder `place` what a page says. A block of Python names its file in the first line and shows the
    function of the exercise: as it is given, or what the reader writes. Returns, for each block for the shell, the
    lines, what they print, and what the page shows directly after them."""
    found, end, last = [], 0, None
    for m in BLOCK.finditer(page):
        language, text = m.groups()
        if language == "python":
            address, _, function = text.partition("\n")
            file = place / address.removeprefix("# ")
            given = file.read_text()
            if "...  # your code" in function: assert f"\n\n{function}" in given, address
            else: file.write_text(given[:given.index(f"\n{function.partition('(')[0]}(") + 1] + function)
        elif language == "sh":
            script = f'python() {{ "{sys.executable}" "$@"; }}\n{text}'
            run = subprocess.run(["sh", "-c", script], cwd=place, text=True, capture_output=True, timeout=120)
            assert run.stderr == "", text
            found.append((text, run.stdout, ""))
        elif last == "sh" and not page[end:m.start()].strip(): found[-1] = (*found[-1][:2], text)
        end, last = m.end(), language
    return found


def test_the_page_shows_what_the_command_prints(tmp_path):
    found = followed(PAGE.read_text(), tmp_path)
    for lines, printed, shown in found: assert printed == shown, lines
    assert sum("cygrad learn" in lines for lines, _, _ in found) >= 4 and len(list(tmp_path.rglob("ch06a*"))) == 3


def test_a_page_that_shows_something_else_is_found(tmp_path):
    [(_, printed, shown)] = followed("```sh\necho one\n```\n\n```text\ntwo\n```\n", tmp_path)
    assert (printed, shown) == ("one\n", "two\n")
    mean = course.find("ch29a").file
    (tmp_path / mean.name).write_text(mean.read_text())
    followed(f"```python\n# {mean.name}\ndef mean(means, rows):\n    return 1\n```\n", tmp_path)
    assert (tmp_path / mean.name).read_text() == mean.read_text().replace("...  # your code", "return 1")
