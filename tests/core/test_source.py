"""The line of the user's program and the running operator, for messages and memory events."""

import runpy
import sys
import threading

import pytest

import cygrad as cg
from cygrad.core.source import where


def here():
    frame = sys._getframe(1)
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def test_where_is_the_line_that_asks():
    assert where() == here()
    found = []
    assert [where() for _ in range(1)][0][:2] == here()[:2]
    thread = threading.Thread(target=lambda: found.append(where()))
    thread.start()
    thread.join()
    assert found[0] == (__file__, test_where_is_the_line_that_asks.__code__.co_firstlineno + 4, "<lambda>")


def test_frames_of_the_package_are_passed_over():
    """An allocation inside cygrad's Python code is attributed to the line that called it."""
    lines = []
    with cg.memory.events(lambda event: lines.append(where())):
        x = cg.testing.gradcheck
        with pytest.raises(AssertionError):
            x(lambda t: t * 2.0 if where()[0] != __file__ else t.detach() * t, [cg.tensor([1.0], "float64", True)])
    assert lines and {name for name, _, _ in lines} == {__file__}


def test_no_frame_but_the_packages_own(tmp_path):
    """Without a frame outside the package there is no line. The demo counts as a program."""
    where_file = cg.memory.__file__
    code = compile("from cygrad.core.source import where\nfound = where()", where_file, "exec")
    names = {}
    exec(code, names)                               # called from here
    assert names["found"][0] == __file__
    script = tmp_path / "script.py"
    script.write_text("from cygrad.core.source import where\n\nfound = where()\n")
    assert runpy.run_path(str(script))["found"] == (str(script), 3, "<module>")
