"""The build: one extension per .pyx, found by globbing; every directive and flag stands here, once.

    CYGRAD_DEBUG=1      bounds checks in every kernel, freed memory filled with NaN, assertions
    CYGRAD_NO_OPENMP=1  one thread, no OpenMP
    CYGRAD_ASAN=1       AddressSanitizer (see `make asan`)
    CYGRAD_LEVELS=avx2  instruction levels to build kernels for beside the one for any processor (unset: all)
    CYGRAD_SYMBOLS=1    keep the symbols, for perf and gdb
    CYGRAD_WERROR=1     warnings of Cython and of the C compiler are errors

Other flags than those of the build before compile everything again.
"""

import multiprocessing
import os
import platform
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

Options.buffer_max_dims = 3     # kernels need two: memoryviews of 88 bytes instead of 208 are cheap to pass by value

DEBUG = bool(os.environ.get("CYGRAD_DEBUG"))
ASAN = bool(os.environ.get("CYGRAD_ASAN"))
WERROR = bool(os.environ.get("CYGRAD_WERROR"))
FORKS = multiprocessing.get_start_method() == "fork"    # otherwise Cython's workers would not see our Options
# The kernels are built once for each level of instructions, and the best that the machine has is taken at import.
LEVELS = {
    "avx2": ["-mavx2", "-mfma", "-mbmi", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512cd", "-mfma", "-mbmi", "-mbmi2",
               "-mprefer-vector-width=512"],
}
WANTED = "" if DEBUG or ASAN or platform.machine() != "x86_64" else os.environ.get("CYGRAD_LEVELS", " ".join(LEVELS))
LEVELS = {level: LEVELS[level] for level in WANTED.replace(",", " ").split()}
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

# What -Wall -Wextra say of code that Cython wrote, for which no source of ours can be changed.
CYTHON_WARNS = [
    "-Wno-unused-function",     # helpers of its own that a module happens not to call
]


class Build(build_ext):
    """Flags by compiler, chosen when the compiler is known. Cython runs here alone: an sdist needs none of its work."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or True       # as many compilers as there are processors

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            compile_args, link_args = ["/O2"], []
        else:
            # -fno-math-errno: square roots without a call. No fast-math: NaN, infinities and denormals are NumPy's.
            # -fno-trapping-math: both sides of a choice may be computed; nobody reads the processor's exception flags.
            # -fno-strict-aliasing: memory is moved as whole words, whatever lies in it.
            # max-inline-insns-single: gelu's function in float64 is 309 of its units long, 200 are allowed, and a call
            # in a loop is the end of its vectors: 25 ns an element, for 3.3. No other loop gets longer by it.
            compile_args = ["-O3", "-g0", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
                            "--param=max-inline-insns-single=1000", "-fvisibility=hidden", *CYTHON_WARNS]
            link_args = ["-Wl,-s"] if sys.platform == "linux" and not os.environ.get("CYGRAD_SYMBOLS") else []
            if DEBUG:
                compile_args += ["-O1", "-DCYGRAD_DEBUG=1"]
            if ASAN:
                compile_args += ["-g1", "-fsanitize=address", "-fno-omit-frame-pointer"]
                link_args = ["-fsanitize=address"]
            if WERROR:
                compile_args = ["-Wall", "-Wextra", "-Werror", *compile_args]
            if OPENMP:
                compile_args += ["-fopenmp"]
                link_args += ["-fopenmp"]
        flags = repr((compile_args, link_args, DIRECTIVES, LEVELS))
        stamp = Path(self.build_temp, "flags-inplace" if self.inplace else "flags")
        if not stamp.exists() or stamp.read_text() != flags:
            self.force = True
            stamp.unlink(missing_ok=True)
        once = [extension for extension in self.extensions if level_of(extension) is None]
        written = {made.name: made for made in written_by_cython(once, WERROR or self.force)}
        for extension in self.extensions:
            level = level_of(extension)
            of = written[extension.name.replace(f".{level}.", ".") if level else extension.name]
            extension.depends = of.depends
            extension.sources = [copied(source, level) if level else source for source in of.sources]
            extension.extra_compile_args = compile_args + LEVELS.get(level, [])
            extension.extra_link_args = link_args
        super().build_extensions()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(flags)

    def copy_extensions_to_source(self):
        for level in LEVELS: Path("cygrad/kernels", level).mkdir(parents=True, exist_ok=True)
        super().copy_extensions_to_source()


class BuildPython(build_py):
    """The Python files, and the headers of include/ as cygrad/include (an editable install has them in their place)."""

    def run(self):
        super().run()
        if self.editable_mode: return
        for header in sorted(Path("include").rglob("*.h")):
            target = Path(self.build_lib, "cygrad", header)
            self.mkpath(str(target.parent))
            self.copy_file(str(header), str(target))


def extensions():
    sources = sorted(map(str, Path("cygrad").rglob("*.pyx")))
    names = [source[:-4].replace(os.sep, ".") for source in sources]
    made = [Extension(name, [source], include_dirs=["include"]) for name, source in zip(names, sources, strict=True)]
    for level in LEVELS:                            # cygrad/kernels/LEVEL/: modules that take the place of those above
        made += [Extension(name.replace("kernels.", f"kernels.{level}."), [source], include_dirs=["include"])
                 for name, source in zip(names, sources, strict=True)
                 if name.startswith("cygrad.kernels.") and name != "cygrad.kernels.cpu"]
    return [*made, Extension("cygrad._cyutility", ["cygrad/_cyutility.c"])]             # Cython's helpers, once


def level_of(extension):
    """The level of instructions that an extension is built for, None for any processor's."""
    return next((level for level in LEVELS if f".{level}." in extension.name), None)


def copied(source, level):
    """The same C file once more, for another level: object files are named after their source."""
    source = Path(source)
    target = source.parent / level / source.name
    target.parent.mkdir(exist_ok=True)
    shutil.copy2(source, target)
    return str(target)


def written_by_cython(wanted, force):
    """The extensions as Cython translates them; what it did before and finds unchanged only with `force`, as then alone
    it warns again."""
    Options.warning_errors = WERROR
    modules = {"kernels": [], "others": []}
    for extension in wanted:
        modules["kernels" if extension.name.startswith("cygrad.kernels.") else "others"].append(extension)
    built = []
    for floor, group in modules.items():
        built += cythonize(
            group,
            # kernels index typed memoryviews and never from the end; elsewhere x[-1] of a tuple is Python's
            compiler_directives=DIRECTIVES | dict(wraparound=floor != "kernels"),
            build_dir="build/cython" + ("-debug" if DEBUG else ""),
            shared_utility_qualified_name="cygrad._cyutility",
            nthreads=os.cpu_count() or 1 if FORKS else 0,
            force=force,
            quiet=True,
        )
    return built


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": Build, "build_py": BuildPython})
