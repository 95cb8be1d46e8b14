"""The build: one extension per .pyx, found by globbing; every directive and flag stands here, once.

    CYGRAD_DEBUG=1      bounds checks in every kernel, freed memory filled with NaN, assertions
    CYGRAD_NO_OPENMP=1  one thread, no OpenMP
    CYGRAD_ASAN=1       AddressSanitizer (see `make asan`)
    CYGRAD_SYMBOLS=1    keep the symbols, for perf and gdb
    CYGRAD_WERROR=1     warnings of the C compiler are errors
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

Options.buffer_max_dims = 3     # kernels need two: memoryviews of 88 bytes instead of 208 are cheap to pass by value

DEBUG = bool(os.environ.get("CYGRAD_DEBUG"))
ASAN = bool(os.environ.get("CYGRAD_ASAN"))
OPENMP = not os.environ.get("CYGRAD_NO_OPENMP") and sys.platform == "linux"

DIRECTIVES = dict(
    language_level=3,
    boundscheck=DEBUG,
    initializedcheck=False,
    cdivision=True,
    embedsignature=True,
    binding=True,
    auto_pickle=False,
    c_api_binop_methods=True,
)


class Build(build_ext):
    """Flags by compiler, chosen when the compiler is known."""

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            compile_args, link_args = ["/O2"], []
        else:
            # -fno-math-errno: square roots without a call. No fast-math: NaN, infinities and denormals are NumPy's.
            # -fno-strict-aliasing: memory is moved as whole words, whatever lies in it.
            compile_args = ["-O3", "-g0", "-std=c11", "-fno-math-errno", "-fno-strict-aliasing", "-fvisibility=hidden",
                            "-Wno-unused-function"]
            link_args = ["-Wl,-s"] if sys.platform == "linux" and not os.environ.get("CYGRAD_SYMBOLS") else []
            if DEBUG:
                compile_args += ["-O1", "-DCYGRAD_DEBUG=1"]
            if ASAN:
                compile_args += ["-g1", "-fsanitize=address", "-fno-omit-frame-pointer"]
                link_args = ["-fsanitize=address"]
            if os.environ.get("CYGRAD_WERROR"):
                compile_args += ["-Wall", "-Werror"]
            if OPENMP:
                compile_args += ["-fopenmp"]
                link_args += ["-fopenmp"]
        for extension in self.extensions:
            extension.extra_compile_args = compile_args
            extension.extra_link_args = link_args
        super().build_extensions()


def extensions():
    modules = {"kernels": [], "others": []}
    for source in sorted(map(str, Path("cygrad").rglob("*.pyx"))):
        floor = "kernels" if f"{os.sep}kernels{os.sep}" in source else "others"
        modules[floor].append(Extension(source[:-4].replace(os.sep, "."), [source], include_dirs=["include"]))
    modules["others"].append(Extension("cygrad._cyutility", ["cygrad/_cyutility.c"]))   # Cython's helpers, once
    built = []
    for floor, wanted in modules.items():
        built += cythonize(
            wanted,
            # kernels index typed memoryviews and never from the end; elsewhere x[-1] of a tuple is Python's
            compiler_directives=DIRECTIVES | dict(wraparound=floor != "kernels"),
            build_dir="build/cython" + ("-debug" if DEBUG else ""),
            shared_utility_qualified_name="cygrad._cyutility",
            nthreads=os.cpu_count() or 1,
            quiet=True,
        )
    return built


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": Build})
