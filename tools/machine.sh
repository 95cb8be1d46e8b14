#!/bin/sh
# Prints in one line what is missing on this machine to build cygrad: tools/machine.sh PYTHON
python=${1:-python3}
say() { echo "cygrad: $*" >&2; exit 1; }

command -v "$python" >/dev/null 2>&1 || say "there is no $python; install Python 3.11 or newer, or name it: make PYTHON=..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    say "$python is $("$python" -V 2>&1); cygrad needs Python 3.11 or newer: make PYTHON=..."
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    say "$python has no venv module; install it (on Debian and Ubuntu: apt install python3-venv)"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$include/Python.h" ] || say "there is no $include/Python.h; install Python's headers (apt install python3-dev)"
cc=${CC:-$("$python" -c 'import sysconfig; print((sysconfig.get_config_var("CC") or "cc").split()[0])')}
command -v "${cc%% *}" >/dev/null 2>&1 || say "there is no C compiler ${cc%% *}; install one (apt install gcc), or name it: CC=..."
compiles() { printf '#include <Python.h>\nint main(void) { return 0; }\n' | $cc -I"$include" "$@" -fsyntax-only -xc - 2>/dev/null; }
compiles || say "$cc cannot compile a file that includes Python.h; are the C library's headers there (apt install libc6-dev)?"
[ -n "$CYGRAD_NO_OPENMP" ] || compiles -fopenmp || say "$cc does not support OpenMP; build without it: CYGRAD_NO_OPENMP=1 make ..."
