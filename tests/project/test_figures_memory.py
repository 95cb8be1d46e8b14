"""The figures of chapter 14 that react say what cygrad computes. Run with the extras docs and test:
`make docs-test`."""

import contextlib
import io
import re
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parents[2]
WALKTHROUGH = ROOT / "docs" / "walkthrough"

pytestmark = pytest.mark.slow


# ---- chapter 14 ------------------------------------------------------------------------------------------------------

def test_the_report_has_the_peaks_of_the_chapter(figure, browser):
    """The categories at the peak of each step are those of the chapter's profiles p and q."""
    names = {"__name__": "document"}
    chapter = WALKTHROUGH.joinpath("14-reading-the-memory-report.md").read_text()
    with contextlib.redirect_stdout(io.StringIO()):
        for code in re.findall(r"^```python\n(.*?)^```$", chapter, re.M | re.S):
            if "q" not in names: exec(code, names)
    told = figure("report")
    for k, (step, name) in enumerate({"with the name h": "p", "without it": "q"}.items()):
        profile, rows = names[name], {}
        for row in profile.at_peak(): rows[row.category] = rows.get(row.category, 0) + row.bytes
        told(step=step)
        text = told(event=browser.run(f"steps[{k}].findIndex(event => sum(event) === peaks[{k}]) + 1"))
        assert f". {profile.peak_bytes:,} bytes are live: " in text and text.endswith("This is the peak of the step.")
        assert all(f"{nbytes:,} {category}" in text for category, nbytes in rows.items()), text
    profile = None
    names.clear()
