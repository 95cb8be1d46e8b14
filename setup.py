"""The build: a module for each .pyx, found by globbing; every directive and flag stands here, once.

The modules lie in bundles, shared objects that hold many (cygrad/bundles.py says why): cygrad/_modules has all but the
kernels, cygrad/kernels/_LEVEL the kernels for one level of instructions. A changed .pyx is one file to compile.

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
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

Options.buffer_max_dims = 3     # kernels need two: memoryviews of 88 bytes instead of 208 are cheap to pass by value

DEBUG = bool(os.environ.get("CYGRAD_DEBUG"))
ASAN = bool(os.environ.get("CYGRAD_ASAN"))
WERROR = bool(os.environ.get("CYGRAD_WERROR"))
FORKS = multiprocessing.get_start_method() == "fork"    # otherwise Cython's workers would not see our Options
# The kernels are built once for each level of instructions, and the best that the machine has is taken at import.
LEVELS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mbmi", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512cd", "-mfma", "-mbmi", "-mbmi2",
               "-mprefer-vector-width=512"],
}
WANTED = "" if DEBUG or ASAN or platform.machine() != "x86_64" else os.environ.get("CYGRAD_LEVELS", " ".join(LEVELS))
if set(WANTED.replace(",", " ").split()) - set(LEVELS):
    sys.exit(f"CYGRAD_LEVELS is {WANTED!r}; the levels that can be built are {', '.join(LEVELS)}")
LEVELS = {level: LEVELS[level] for level in ["baseline", *WANTED.replace(",", " ").split()]}
OPENMP = not os.environ.get("CYGRAD_NO_OPENMP") and sys.platform == "linux"

DIRECTIVES = dict(
    language_level=3,
    initializedcheck=False,
    cdivision=True,
    embedsignature=True,
    binding=True,           # but for the methods of compiled classes, which would not check their self: the house test
    allow_none_for_extension_args=False,
    auto_pickle=False,
    c_api_binop_methods=True,
)

ANSWERS = str(Path("include", "cygrad", "answers.h"))     # goes before Cython's own helpers

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
            compile_args, loops, link_args = ["/O2"], [], []
        else:
            # -fno-math-errno: square roots without a call. No fast-math: NaN, infinities and denormals are NumPy's.
            # -fno-trapping-math: both sides of a choice may be computed; nobody reads the processor's exception flags.
            # -fno-strict-aliasing: memory is moved as whole words, whatever lies in it.
            # max-inline-insns-single: gelu's function in float64 is 309 of its units long, 200 are allowed, and a call
            # in a loop is the end of its vectors: 25 ns an element, for 3.3. No other loop gets longer by it.
            # -O3 for the kernels alone: elsewhere it is not faster, and a twentieth larger.
            compile_args = ["-O2", "-g0", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
                            "--param=max-inline-insns-single=1000", "-fvisibility=hidden", *CYTHON_WARNS]
            loops = ["-O3"]
            link_args = ["-Wl,-s"] if sys.platform == "linux" and not os.environ.get("CYGRAD_SYMBOLS") else []
            if DEBUG:
                compile_args += ["-O1", "-DCYGRAD_DEBUG=1"]
                loops = []
            if ASAN:
                compile_args += ["-g1", "-fsanitize=address", "-fno-omit-frame-pointer"]
                link_args = ["-fsanitize=address"]
            if WERROR:
                compile_args = ["-Wall", "-Wextra", "-Werror", *compile_args]
            if OPENMP:
                compile_args += ["-fopenmp"]
                link_args += ["-fopenmp"]
        flags_now = repr((compile_args, loops, link_args, DIRECTIVES, LEVELS))
        stamp = Path(self.build_temp, "flags-inplace" if self.inplace else "flags")
        if not stamp.exists() or stamp.read_text() != flags_now:
            self.force = True
            stamp.unlink(missing_ok=True)
        written = {module.name: module for module in written_by_cython(modules(), WERROR or self.force)}
        with ThreadPoolExecutor(None if self.parallel is True else self.parallel or 1) as pool:
            for bundle in self.extensions:
                level = bundle.name.rpartition("._")[2] if ".kernels." in bundle.name else ""
                parts = [written[name] for name in bundle.modules]
                flags = compile_args + (loops + LEVELS[level] if level else [])
                bundle.extra_objects = list(pool.map(lambda part, f=flags, l=level: self.compiled(part, f, l), parts))
                bundle.define_macros = [("BUNDLE_INIT", "PyInit_" + bundle.name.rpartition(".")[2]),
                                        ("BUNDLE_TABLE", f'"{self.table(bundle)}"')]
                bundle.depends = bundle.extra_objects
                bundle.extra_compile_args, bundle.extra_link_args = compile_args, link_args
        self.parallel = None                        # the bundles share a source: one after the other
        super().build_extensions()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(flags_now)

    def compiled(self, module, flags, level):
        """The object file of a module that Cython has written, compiled if it is older than what it depends on."""
        where = os.path.join(self.build_temp, level)
        [target] = self.compiler.object_filenames(module.sources, output_dir=where)
        if module.name == "cygrad._cyutility":
            flags = [*flags, "/FI" + ANSWERS if self.compiler.compiler_type == "msvc" else "-include" + ANSWERS]
        if self.force or newer_group([*module.sources, *module.depends], target):
            self.compiler.compile(module.sources, output_dir=where, include_dirs=module.include_dirs,
                                  macros=[("PyInit_" + module.name.rpartition(".")[2], init_name(module.name))],
                                  extra_postargs=flags)
        return target

    def table(self, bundle):
        """The header that lists the modules of a bundle for cygrad/bundle.c."""
        path = Path(self.build_temp, bundle.name + ".h").absolute()
        lines = "".join(f'MODULE({init_name(name)}, "{name}")\n' for name in bundle.modules)
        if not path.exists() or path.read_text() != lines:
            path.write_text(lines)
        return path


class BuildPython(build_py):
    """The Python files, and the headers of include/ as cygrad/include (an editable install has them in their place)."""

    def run(self):
        super().run()
        if self.editable_mode: return
        for header in sorted(Path("include").rglob("*.h")):
            target = Path(self.build_lib, "cygrad", header)
            self.mkpath(str(target.parent))
            self.copy_file(str(header), str(target))


class Bundle(Extension):
    """A shared object that holds the modules of those names."""

    def __init__(self, name, modules):
        super().__init__(name, ["cygrad/bundle.c"])
        self.modules = modules


def modules():
    """An extension for each .pyx, and one for Cython's helpers: what Cython translates."""
    sources = sorted(map(str, Path("cygrad").rglob("*.pyx")))
    made = [Extension(source[:-4].replace(os.sep, "."), [source], include_dirs=["include"]) for source in sources]
    utility = Extension("cygrad._cyutility", ["cygrad/_cyutility.c"], include_dirs=["include"], depends=[ANSWERS])
    return [*made, utility]


def bundles():
    """What is built. cygrad.kernels.cpu, which chooses the level, is with the rest."""
    names = [module.name for module in modules()]
    kernels = [name for name in names if name.startswith("cygrad.kernels.") and name != "cygrad.kernels.cpu"]
    return [Bundle("cygrad._modules", [name for name in names if name not in kernels]),
            *(Bundle(f"cygrad.kernels._{level}", kernels) for level in LEVELS if kernels)]


def init_name(module):
    """What the init function of a module is called in its bundle, where two modules may have the same last name."""
    return "init_" + module.replace(".", "_")


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
            # kernels index typed memoryviews, inside their sizes and never from the end; elsewhere x[-1] of a tuple is
            # Python's, and one that is too short an IndexError
            compiler_directives=DIRECTIVES | dict(wraparound=floor != "kernels", boundscheck=DEBUG or floor != "kernels"),
            build_dir="build/cython" + ("-debug" if DEBUG else ""),
            shared_utility_qualified_name="cygrad._cyutility",
            nthreads=os.cpu_count() or 1 if FORKS else 0,
            force=force,
            quiet=True,
        )
    return built


if __name__ == "__main__":
    setup(ext_modules=bundles(), cmdclass={"build_ext": Build, "build_py": BuildPython})
