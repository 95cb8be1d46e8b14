"""The C compiler that compiles the benchmarks' own C code."""

import os
import shlex
import shutil
import sysconfig


def compiler():
    """The command of the C compiler, as a list, or None."""
    command = shlex.split(os.environ.get("CC") or "cc")
    if not shutil.which(command[0]):
        command = shlex.split(sysconfig.get_config_var("CC") or "gcc")
    return command if shutil.which(command[0]) else None
