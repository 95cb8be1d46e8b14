#!/bin/sh
# The tests under AddressSanitizer: `tests/asan.sh [pytest arguments]`. The sources are copied to build/asan and built
# there with CYGRAD_ASAN=1. PYTHON is the interpreter (python3), TESTS the tests (all).
#
# Leaks are looked for by the tests themselves (every byte is counted); detect_leaks would report CPython's own caches.
# libstdc++ is preloaded too, for the exceptions of C++ libraries that tests import: the sanitizer ends the process at the
# first one else. PYTHONMALLOC=malloc gives every Python object a block of its own, so that a dead one is seen. A thread of
# 256 KiB has no room for the sanitizer's larger frames, an address space with a limit none for its shadow memory, and a
# browser does not start with it preloaded, and the witness of the arena must be preloaded itself: those tests run in the
# plain suite alone.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
rm -rf build/asan/cygrad build/asan/tests
mkdir -p build/asan
tar -cf - --exclude='*.so' --exclude=__pycache__ cygrad tests include setup.py | tar -xf - -C build/asan
for f in pyproject.toml README.md CONTRIBUTING.md; do [ ! -f $f ] || cp $f build/asan/; done
cd build/asan
CYGRAD_ASAN=1 "$python" setup.py -q build_ext --inplace > build.log 2>&1 || { tail -20 build.log; exit 1; }
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc PYTHONPATH="$PWD" CYGRAD_PROGRAMS="${CYGRAD_PROGRAMS:-300}"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:halt_on_error=1
exec "$python" -m pytest -q -p no:cacheprovider ${TESTS:-tests} -k "not million and not deep and not system_says_no and not in_a_browser and not witness_outside and not to_the_system" "$@"
