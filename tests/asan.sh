#!/bin/sh
# The tests under AddressSanitizer: `tests/asan.sh [pytest arguments]`. The sources are copied to build/asan and built
# there with CYGRAD_ASAN=1. PYTHON is the interpreter (python3), TESTS the tests (all).
#
# The tests themselves detect leaks, because every byte is counted. detect_leaks would report CPython's own caches.
# libstdc++ is preloaded too: otherwise the sanitizer ends the process at the first exception of a C++ library that tests
# import. With PYTHONMALLOC=malloc every Python object has a block of its own, so accesses to dead ones are detected. Some
# tests run only without the sanitizer: its frames do not fit into a thread's stack of 256 KiB, its shadow memory does not
# fit into a limited address space, a browser does not start with it, the witness of the arena must be preloaded itself,
# and a child that is forked while another thread allocates finds the sanitizer's allocator locked for ever.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
rm -rf build/asan/cygrad build/asan/tests build/asan/tools
mkdir -p build/asan
tar -cf - --exclude='*.so' --exclude=__pycache__ cygrad tests include tools setup.py | tar -xf - -C build/asan
mkdir -p build/asan/docs
for f in pyproject.toml README.md CONTRIBUTING.md docs/overview.md; do [ ! -f $f ] || cp $f build/asan/$f; done
cd build/asan
CYGRAD_ASAN=1 "$python" setup.py -q build_ext --inplace > build.log 2>&1 || { tail -20 build.log; exit 1; }
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc PYTHONPATH="$PWD" CYGRAD_PROGRAMS="${CYGRAD_PROGRAMS:-300}"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:halt_on_error=1
exec "$python" -m pytest -q -p no:cacheprovider ${TESTS:-tests} -k "not million and not deep and not system_says_no and not in_a_browser and not witness_outside and not to_the_system and not larger_than_memory and not fork" "$@"
