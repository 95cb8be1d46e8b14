"""The build: a module for each .pyx, found by globbing; every directive and flag stands here, once.

The modules lie in bundles, shared objects that hold many (cygrad/bundles.py says why): cygrad/_modules has all but the
kernels, cygrad/kernels/_LEVEL the kernels for one level of instructions. A changed .pyx is one file to compile.

    CYGRAD_DEBUG=1      bounds checks in every kernel, freed memory filled with NaN, assertions
    CYGRAD_NO_OPENMP=1  one thread, no OpenMP
    CYGRAD_ASAN=1       AddressSanitizer (see `make asan`)
    CYGRAD_LEVELS=avx2  instruction levels to build kernels for beside the one for any processor (unset: all); "native"
                        is this machine's best level, without the one for any processor, and what is built here already
    CYGRAD_SYMBOLS=1    keep the symbols, for perf and gdb
    CYGRAD_WERROR=1     warnings of Cython and of the C compiler are errors

Each object file is compiled again when its sources or its own flags have changed, so that other switches than those of
the build before compile only what they concern. In-place builds remove the kernels of levels that are not wanted: they
would be of another build than the rest.
"""

import multiprocessing
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

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


def best_level():
    """The best level that this machine has, found as the package will find it (include/cygrad/platform.h)."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    program = '#include <stdio.h>\n#include "cygrad/platform.h"\nint main(void) { return puts(cg_best_level()) < 0; }\n'
    with TemporaryDirectory() as where:
        best = where + "/best"
        subprocess.run([*compiler, "-Iinclude", "-xc", "-", "-o", best], input=program, text=True, check=True)
        return subprocess.run([best], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def levels_here():
    """The levels for which kernels have been built in place, by file."""
    return {file.name.partition(".")[0][1:]: file for file in Path("cygrad/kernels").glob(f"_*{SUFFIX}")}


def levels(asked):
    """The names of the levels to build, of those that CYGRAD_LEVELS may name."""
    asked = set(asked.replace(",", " ").split())
    if asked - {*LEVELS, "native"}:
        sys.exit(f"CYGRAD_LEVELS is {os.environ['CYGRAD_LEVELS']!r}; the levels that can be built are "
                 f"{', '.join(LEVELS)}, and native")
    asked |= {best_level(), *levels_here()} if "native" in asked else {"baseline"}
    return [level for level in LEVELS if level in asked]


SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
ONE = DEBUG or ASAN or platform.machine() != "x86_64"
LEVELS = {level: LEVELS[level] for level in levels("" if ONE else os.environ.get("CYGRAD_LEVELS", " ".join(LEVELS)))}
OPENMP = not os.environ.get("CYGRAD_NO_OPENMP") and sys.platform == "linux"

DIRECTIVES = dict(
    language_level=3,
    initializedcheck=False,
    cdivision=True,
    embedsignature=True,
    binding=True,           # but for the methods of compiled classes, which would not check self: test_structure.py
    annotation_typing=False,            # annotations are for readers and the stubs; no argument is converted by them
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
                link_args += ["-fopenmp"]
        if self.editable_mode:                      # setuptools would compile all of it in a directory that it removes
            self.build_temp = os.path.join("build", f"temp.{self.plat_name}-{sys.implementation.cache_tag}")
        forced = self.force
        written = {module.name: module for module in written_by_cython(modules(), WERROR or forced)}
        parts = [[self.part(written[name], compile_args, loops, level_of(bundle)) for name in bundle.modules]
                 for bundle in self.extensions]
        todo = [part for group in parts for part in group if forced or part.old()]
        todo.sort(key=lambda part: -os.path.getsize(part.module.sources[0]))    # no long one last, alone
        with ThreadPoolExecutor(None if self.parallel is True else self.parallel or 1) as pool:
            list(pool.map(lambda part: part.compile(self.compiler), todo))
        for bundle, group in zip(self.extensions, parts, strict=True):      # not at once: they share a source
            bundle.extra_objects = bundle.depends = [part.target for part in group]
            bundle.define_macros = [("BUNDLE_INIT", "PyInit_" + bundle.name.rpartition(".")[2]),
                                    ("BUNDLE_TABLE", f'"{self.table(bundle)}"')]
            bundle.extra_compile_args, bundle.extra_link_args = compile_args, link_args
            linker = getattr(self.compiler, "linker_so", None)
            linked = Note(Path(self.build_temp, bundle.name), (linker, compile_args, link_args, group))
            self.force = forced or not linked.holds()
            linked.forget()
            self.build_extension(bundle)
            linked.write()
        self.force = forced

    def part(self, module, flags, loops, level):
        """What is to be compiled of a module that Cython has written, for a level ("" for all but kernels)."""
        if level: flags = [*flags, *loops, *LEVELS[level]]
        if OPENMP and uses_openmp(module): flags = [*flags, "-fopenmp"]
        if module.name == "cygrad._cyutility":
            flags = [*flags, "/FI" + ANSWERS if self.compiler.compiler_type == "msvc" else "-include" + ANSWERS]
        where = os.path.join(self.build_temp, level)
        [target] = self.compiler.object_filenames(module.sources, output_dir=where)
        return Part(module, flags, where, target, getattr(self.compiler, "compiler_so", None))

    def copy_extensions_to_source(self):
        super().copy_extensions_to_source()
        for level, file in levels_here().items():
            if level not in LEVELS: file.unlink()

    def table(self, bundle):
        """The header that lists the modules of a bundle for cygrad/bundle.c."""
        path = Path(self.build_temp, bundle.name + ".h").absolute()
        lines = "".join(f'MODULE({init_name(name)}, "{name}")\n' for name in bundle.modules)
        if not path.exists() or path.read_text() != lines:
            path.write_text(lines)
        return path


class Note:
    """A file beside what was built that says with which flags; without it, that was not finished."""

    def __init__(self, built, flags):
        self.file, self.text = Path(f"{built}.flags"), repr(flags)

    def holds(self):
        return self.file.exists() and self.file.read_text() == self.text

    def forget(self):
        self.file.unlink(missing_ok=True)

    def write(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.text)


class Part:
    """The object file of a module: what it depends on, and how it is compiled."""

    def __init__(self, module, flags, where, target, compiler):
        self.module, self.flags, self.where, self.target = module, flags, where, target
        self.note = Note(target, (compiler, flags))

    def __repr__(self):
        return self.target

    def old(self):
        return not self.note.holds() or newer_group([*self.module.sources, *self.module.depends], self.target)

    def compile(self, compiler):
        self.note.forget()
        compiler.compile(self.module.sources, output_dir=self.where, include_dirs=self.module.include_dirs,
                         macros=[("PyInit_" + self.module.name.rpartition(".")[2], init_name(self.module.name))],
                         extra_postargs=self.flags)
        self.note.write()


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


def level_of(bundle):
    """The level that a bundle has kernels for; "" for all but the kernels."""
    return bundle.name.rpartition("._")[2] if ".kernels." in bundle.name else ""


def uses_openmp(module):
    """Whether OpenMP's flag makes a difference to a module: it has parallel loops, or says whether there are any."""
    return any(word in Path(module.sources[0]).read_text() for word in ("omp parallel", "CG_HAVE_OPENMP"))


def init_name(module):
    """What the init function of a module is called in its bundle, where two modules may have the same last name."""
    return "init_" + module.replace(".", "_")


def written_by_cython(wanted, force):
    """The extensions as Cython translates them; what it did before with these directives and finds unchanged, only with
    `force`, as then alone it warns again."""
    where = Path("build", "cython" + ("-debug" if DEBUG else ""))
    directives = Note(where / "directives", DIRECTIVES)
    if not directives.holds():
        force = True
        directives.forget()
    Options.warning_errors = WERROR
    modules = {"kernels": [], "others": []}
    for extension in wanted:
        modules["kernels" if extension.name.startswith("cygrad.kernels.") else "others"].append(extension)
    built = []
    for layer, group in modules.items():
        built += cythonize(
            group,
            # kernels index typed memoryviews, inside their sizes and never from the end; elsewhere x[-1] of a tuple is
            # Python's, and one that is too short an IndexError
            compiler_directives=DIRECTIVES | dict(wraparound=layer != "kernels",
                                                  boundscheck=DEBUG or layer != "kernels"),
            build_dir=str(where),
            shared_utility_qualified_name="cygrad._cyutility",
            nthreads=os.cpu_count() or 1 if FORKS else 0,
            force=force,
            quiet=True,
        )
    directives.write()
    return built


if __name__ == "__main__":
    setup(ext_modules=bundles(), cmdclass={"build_ext": Build, "build_py": BuildPython})
