"""A check in a process of its own, so that a reader's file can neither stop nor crash the command. This module is also
the program of that process: python -m cygrad.learn.running FILE EXERCISE RESULT"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from cygrad.learn import course
from cygrad.learn.checking import Verdict, judge

LINES = 10                      # of what a file prints, shown if its check fails
LIMITS = {resource.RLIMIT_DATA: 4 << 30, resource.RLIMIT_FSIZE: 64 << 20}     # memory, and a file that is written


def run(path, exercise, seconds):
    """The Verdict of the check of an exercise on the file at `path`, after at most so many seconds."""
    with tempfile.TemporaryDirectory() as there:
        result, printed = Path(there, "result.json"), Path(there, "printed")
        command = [sys.executable, "-m", "cygrad.learn.running", str(path), exercise.name, str(result)]
        with open(printed, "wb") as out:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                     start_new_session=True)
            try: status = child.wait(seconds)
            except subprocess.TimeoutExpired: status = None
            finally: end(child)
        try: verdict = Verdict(*json.loads(result.read_text()))
        except (OSError, ValueError): verdict = Verdict("crash", crashed(status))
        if status is None: verdict = Verdict("time", f"It ran for {seconds:g} seconds and was stopped. Is there a loop "
                                                     "that does not end? (`--timeout` gives it more time.)")
        if verdict.state not in ("passed", "new"): verdict = with_output(verdict, last_part(printed))
    return verdict


def end(child):
    """Stop the process and those that it has started."""
    with contextlib.suppress(ProcessLookupError): os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def crashed(status):
    """A sentence about a process that ended without a result."""
    if status is not None and status < 0: return f"Python was ended by {signal.Signals(-status).name}."
    return f"Python ended with status {status} before the check was complete."


def last_part(path, nbytes=1 << 16):
    with open(path, "rb") as f:
        f.seek(max(0, path.stat().st_size - nbytes))
        return f.read()


def with_output(verdict, printed):
    """The verdict, and the last lines that the file has printed."""
    lines = printed.decode(errors="replace").splitlines()[-LINES:]
    return verdict._replace(text="\n".join([verdict.text, "It printed:", *("    " + l[:200] for l in lines)])
                            if lines else verdict.text)


def main(path, name, result):
    for which, limit in LIMITS.items():             # (a mistake becomes an exception in place of a full machine)
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    verdict = judge(path, course.find(name))
    Path(result).write_text(json.dumps(verdict))


if __name__ == "__main__":
    main(*sys.argv[1:])
