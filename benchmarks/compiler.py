"""The C compiler, for what the benchmarks compile themselves."""

import os
import shlex
import shutil
import sysconfig


def compiler():
    """The command of the C compiler, as a list; None if there is none."""
    command = shlex.split(os.environ.get("CC") or "cc")
    if not shutil.which(command[0]):
        command = shlex.split(sysconfig.get_config_var("CC") or "gcc")
    return command if shutil.which(command[0]) else None
