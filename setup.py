"""The build. Each .pyx file becomes a module; all directives and flags are in this file.

The modules are linked into bundles, shared objects with many modules each (cygrad/bundles.py has the reason).
cygrad/_modules has everything except the kernels, and cygrad/kernels/_LEVEL has the kernels for one instruction level.
After a change to one .pyx file, one file is compiled.

    CYGRAD_DEBUG=1      bounds checks in all kernels, freed memory filled with NaN, assertions
    CYGRAD_NO_OPENMP=1  one thread, no OpenMP
    CYGRAD_ASAN=1       AddressSanitizer (see `make asan`)
    CYGRAD_LEVELS=avx2  instruction levels to build in addition to "baseline", which runs on any CPU (default: all).
                        "native" builds the highest level of this machine and the levels already built here, and not
                        the baseline.
    CYGRAD_SYMBOLS=1    keep the symbols and the tables for unwinding, for perf and gdb
    CYGRAD_WERROR=1     warnings of Cython and of the C compiler are errors
    CYGRAD_QUICK=1      compiles without optimization, in a quarter of the time, and runs slowly: for work on a .pxd
                        file that most modules read, and to try other versions of Python (tools/pythons.py)

An object file is compiled again if its sources or its flags have changed. After a change of switches, only the affected
files are compiled. A build in place removes the kernels of levels that were not requested, because they would belong to
another build.
"""

import ast
import json
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

sys.path.insert(0, "tools")
import structure

Options.buffer_max_dims = 3     # kernels need two. Passing memoryviews of 88 bytes is cheaper than 208.

DEBUG = bool(os.environ.get("CYGRAD_DEBUG"))
ASAN = bool(os.environ.get("CYGRAD_ASAN"))
SYMBOLS = bool(os.environ.get("CYGRAD_SYMBOLS"))
WERROR = bool(os.environ.get("CYGRAD_WERROR"))
QUICK = bool(os.environ.get("CYGRAD_QUICK"))
FORKS = multiprocessing.get_start_method() == "fork"    # otherwise Cython's workers do not inherit Options
# The kernels are built once for each instruction level. The import selects the highest level of the machine.
LEVELS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mbmi", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512cd", "-mfma", "-mbmi", "-mbmi2",
               "-mprefer-vector-width=512"],
}


def best_level():
    """The highest level of this machine, from the function that the package uses too (include/cygrad/platform.h)."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    program = '#include <stdio.h>\n#include "cygrad/platform.h"\nint main(void) { return puts(cg_best_level()) < 0; }\n'
    with TemporaryDirectory() as directory:
        best = directory + "/best"
        subprocess.run([*compiler, "-Iinclude", "-xc", "-", "-o", best], input=program, text=True, check=True)
        return subprocess.run([best], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def levels_here():
    """The levels whose kernels were built in place, with their files."""
    return {file.name.partition(".")[0][1:]: file for file in Path("cygrad/kernels").glob(f"_*{SUFFIX}")}


def levels(requested):
    """The levels to build, for a value of CYGRAD_LEVELS."""
    requested = set(requested.replace(",", " ").split())
    if requested - {*LEVELS, "native"}:
        sys.exit(f"CYGRAD_LEVELS is {os.environ['CYGRAD_LEVELS']!r}; the levels that can be built are "
                 f"{', '.join(LEVELS)}, and native")
    requested |= {best_level(), *levels_here()} if "native" in requested else {"baseline"}
    return [level for level in LEVELS if level in requested]


SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
SINGLE = DEBUG or ASAN or platform.machine() != "x86_64"
LEVELS = {level: LEVELS[level] for level in levels("" if SINGLE else os.environ.get("CYGRAD_LEVELS", " ".join(LEVELS)))}
OPENMP = not os.environ.get("CYGRAD_NO_OPENMP") and sys.platform == "linux"

DIRECTIVES = dict(
    language_level=3,
    initializedcheck=False,
    cdivision=True,
    embedsignature=True,
    binding=True,           # except for methods of compiled classes, which would not check self: test_structure.py
    annotation_typing=False,            # annotations are for readers and stubs, and convert no argument
    allow_none_for_extension_args=False,
    auto_pickle=False,
    c_api_binop_methods=True,
)

ANSWERS = str(Path("include", "cygrad", "answers.h"))     # included before Cython's helpers
COLD = str(Path("include", "cygrad", "cold.h"))           # included before the code of a module

# Warnings of -Wall -Wextra about code generated by Cython, which no change to our sources avoids.
CYTHON_WARNS = [
    "-Wno-unused-function",     # Cython's helpers that a module does not call
]


class Build(build_ext):
    """Selects flags for the compiler and runs Cython. An sdist does not run Cython. Writes the stubs of a wheel."""

    def run(self):
        super().run()
        tool = Path("tools", "make_stubs.py")       # an sdist of a built tree has the stubs without it
        if not (self.inplace or self.editable_mode or ASAN) and tool.exists():
            subprocess.run([sys.executable, tool, "--build"], check=True,
                           env=os.environ | {"CYGRAD_BUILT": os.path.abspath(self.build_lib)})

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or True       # one compiler process for each CPU

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            compile_args, kinds, link_args = ["/O2"], dict(kernels=[], loaded=[], late=[]), []
        else:
            # -fno-math-errno: square roots without a call. No fast-math: NaN, infinities and denormals are NumPy's.
            # -fno-trapping-math: both sides of a select may be computed. The CPU's exception flags are not read.
            # -fno-strict-aliasing: memory is copied as whole words, independent of its type.
            # max-inline-insns-single: gelu in float64 has 309 units, and the default limit is 200. A loop with a call
            # is not vectorized: 25 ns per element instead of 3.3. No other loop becomes longer.
            # -O3 only for the kernels: elsewhere it is not faster, and the code is 5 % larger.
            # -Os for what is above the core and loaded at its first use: the code is a third smaller, and a call takes
            # 3 % longer. With the core it would be 40 %. max-inline-insns-size: by default, Py_DECREF is a call.
            # inline-unit-growth: by default a file stops inlining when it is 40 % longer. The gradient of cross_entropy
            # then called exp for each element, and took 1.5 times as long.
            # No tables for unwinding, which are 270 kB of a wheel: no C++ exception passes through this code, and a
            # thread that ends in it needs none. gdb, perf and AddressSanitizer do.
            # CYTHON_COMPRESS_STRINGS: the wheel compresses the strings better, and the import saves the decompression.
            compile_args = ["-O2", "-g0", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
                            "--param=max-inline-insns-single=1000", "-fvisibility=hidden",
                            "-DCYTHON_COMPRESS_STRINGS=0", *CYTHON_WARNS]
            kinds = dict(kernels=["-O3", "--param=inline-unit-growth=200"], loaded=["-include" + COLD],
                         late=["-include" + COLD, "-Os", "--param=max-inline-insns-size=12"])
            link_args = ["-Wl,-s"] if sys.platform == "linux" and not SYMBOLS else []
            if not (SYMBOLS or DEBUG or ASAN):
                compile_args += ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
            if DEBUG:
                compile_args += ["-O1", "-DCYGRAD_DEBUG=1"]
            if QUICK:
                compile_args += ["-O0"]
            if DEBUG or QUICK:
                kinds = dict(kernels=[], loaded=[], late=[])
            if ASAN:
                compile_args += ["-g1", "-fsanitize=address", "-fno-omit-frame-pointer"]
                link_args = ["-fsanitize=address"]
            if WERROR:
                compile_args = ["-Wall", "-Wextra", "-Werror", *compile_args]
            if OPENMP:
                link_args += ["-fopenmp"]
        if self.editable_mode:                      # setuptools would use a directory that it removes
            self.build_temp = os.path.join("build", f"temp.{self.plat_name}-{sys.implementation.cache_tag}")
        forced = self.force
        written = {module.name: module for module in written_by_cython(modules(), forced)}
        parts = [[self.part(written[name], compile_args, kinds, level_of(bundle)) for name in bundle.modules]
                 for bundle in self.extensions]
        outdated = [part for group in parts for part in group if forced or part.old()]
        outdated.sort(key=lambda part: -os.path.getsize(part.module.sources[0]))     # longest first
        with ThreadPoolExecutor(None if self.parallel is True else self.parallel or 1) as pool:
            list(pool.map(lambda part: part.compile(self.compiler), outdated))
        for bundle, group in zip(self.extensions, parts, strict=True):      # one after the other: they share a source
            table = self.table(bundle)
            bundle.extra_objects = [part.target for part in group]
            bundle.depends = [*bundle.extra_objects, str(table)]
            bundle.define_macros = [("BUNDLE_INIT", "PyInit_" + bundle.name.rpartition(".")[2]),
                                    ("BUNDLE_TABLE", f'"{table}"'), *([("BUNDLE_SYMBOLS", None)] if SYMBOLS else [])]
            bundle.extra_compile_args, bundle.extra_link_args = compile_args, link_args
            linker = getattr(self.compiler, "linker_so", None)
            linked = Note(Path(self.build_temp, bundle.name), (linker, compile_args, link_args, group))
            self.force = forced or not linked.holds()
            linked.forget()
            self.build_extension(bundle)
            linked.write()
        self.force = forced

    def part(self, module, flags, kinds, level):
        """The Part for a module, for an instruction level ("" for everything except kernels). `kinds` has the flags of
        kernels, of the core and what else `import cygrad` loads, and of modules that are loaded at their first use."""
        early = module.name in self.extensions[0].order or module.name.startswith("cygrad.core.")
        flags = [*flags, *kinds["kernels" if level else "loaded" if early else "late"], *LEVELS.get(level, ())]
        # (Without OpenMP nothing reads the variables that Cython writes for the end of a parallel loop.)
        if uses_openmp(module): flags = [*flags, "-fopenmp" if OPENMP else "-Wno-unused-but-set-variable"]
        if module.name == "cygrad._cyutility":
            flags = [*flags, "/FI" + ANSWERS if self.compiler.compiler_type == "msvc" else "-include" + ANSWERS]
        directory = os.path.join(self.build_temp, level)
        [target] = self.compiler.object_filenames(module.sources, output_dir=directory)
        return Part(module, flags, directory, target, getattr(self.compiler, "compiler_so", None))

    def copy_extensions_to_source(self):
        super().copy_extensions_to_source()
        for level, file in levels_here().items():
            if level not in LEVELS: file.unlink()

    def table(self, bundle):
        """Write the header that lists the modules of a bundle for cygrad/bundle.c; returns its path."""
        path = Path(self.build_temp, bundle.name + ".h").absolute()
        lines = [f'LOADED("{name}", {json.dumps(doc_of(name))})\n' for name in bundle.order]
        lines += [f'MODULE({init_name(name)}, "{name}")\n' for name in bundle.modules]
        if not path.exists() or path.read_text() != "".join(lines):
            path.write_text("".join(lines))
        return path


class Note:
    """A file beside a built file that records its flags. If it is missing, the build of that file did not finish."""

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
    """The object file of a module, with its dependencies and flags."""

    def __init__(self, module, flags, directory, target, compiler):
        self.module, self.flags, self.directory, self.target = module, flags, directory, target
        self.note = Note(target, (compiler, flags))

    def __repr__(self):
        return self.target

    def old(self):
        return not self.note.holds() or newer_group([*self.module.sources, *self.module.depends], self.target)

    def compile(self, compiler):
        self.note.forget()
        compiler.compile(self.module.sources, output_dir=self.directory, include_dirs=self.module.include_dirs,
                         macros=[("PyInit_" + self.module.name.rpartition(".")[2], init_name(self.module.name))],
                         extra_postargs=self.flags)
        self.note.write()


class BuildPython(build_py):
    """Copies the Python files, and the headers of include/ to cygrad/include (not for an editable install)."""

    def run(self):
        super().run()
        if self.editable_mode: return
        for header in sorted(Path("include").rglob("*.h")):
            target = Path(self.build_lib, "cygrad", header)
            self.mkpath(str(target.parent))
            self.copy_file(str(header), str(target))


class Bundle(Extension):
    """A shared object with the named modules. That of cygrad/_modules has the order in which cygrad/bundles.py loads
    all modules that `import cygrad` needs."""

    def __init__(self, name, modules, order=()):
        super().__init__(name, ["cygrad/bundle.c"])
        self.modules, self.order = modules, order


def modules():
    """The extensions that Cython translates: one for each .pyx, and one for Cython's helpers."""
    sources = sorted(map(str, Path("cygrad").rglob("*.pyx")))
    made = [Extension(source[:-4].replace(os.sep, "."), [source], include_dirs=["include"]) for source in sources]
    utility = Extension("cygrad._cyutility", ["cygrad/_cyutility.c"], include_dirs=["include"], depends=[ANSWERS])
    return [*made, utility]


def bundles():
    """The bundles to build. cygrad.kernels.cpu, which selects the level, is not in a bundle of kernels. The modules
    that `import cygrad` loads stand first in their bundles, side by side, because Linux maps sixteen pages around each
    page that is used. The others are loaded at their first use."""
    order = [name for name in structure.load_order(Path(), "cygrad") if name != "cygrad.bundles"]   # (the loader)
    order.insert(0, "cygrad._cyutility")
    names = sorted((module.name for module in modules()), key=lambda name: name not in order)
    kernels = [name for name in names if name.startswith("cygrad.kernels.") and name != "cygrad.kernels.cpu"]
    return [Bundle("cygrad._modules", [name for name in names if name not in kernels], order),
            *(Bundle(f"cygrad.kernels._{level}", kernels) for level in LEVELS if kernels)]


def doc_of(name):
    """The docstring of a package that has nothing else: the import makes it without reading a file. "" for others."""
    source = Path(*name.split("."), "__init__.py")
    body = ast.parse(source.read_text()).body if source.exists() else ()
    return ast.literal_eval(body[0].value) if len(body) == 1 and isinstance(body[0], ast.Expr) else ""


def level_of(bundle):
    """The instruction level of a bundle of kernels; "" for another bundle."""
    return bundle.name.rpartition("._")[2] if ".kernels." in bundle.name else ""


def uses_openmp(module):
    """Whether a module needs the OpenMP flag: it has parallel loops or tests CG_HAVE_OPENMP."""
    return any(word in Path(module.sources[0]).read_text() for word in ("omp parallel", "CG_HAVE_OPENMP"))


def init_name(module):
    """The name of a module's init function, with the full name, because last names are not unique in a bundle."""
    return "init_" + module.replace(".", "_")


def written_by_cython(wanted, force):
    """Translate the extensions with Cython; with `force`, also those that have not changed. A change of directives
    forces a translation too, and so does WERROR after a build without it, because Cython repeats its warnings only
    then."""
    directory = Path("build", "cython" + ("-debug" if DEBUG else ""))
    directives = Note(directory / "directives", DIRECTIVES | (dict(warning_errors=True) if WERROR else {}))
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
            # kernels index typed memoryviews within bounds and never from the end; elsewhere x[-1] of a tuple must
            # work as in Python, and an index out of range must raise IndexError
            compiler_directives=DIRECTIVES | dict(wraparound=layer != "kernels",
                                                  boundscheck=DEBUG or layer != "kernels"),
            build_dir=str(directory),
            shared_utility_qualified_name="cygrad._cyutility",
            nthreads=os.cpu_count() or 1 if FORKS else 0,
            force=force,
            quiet=True,
        )
    directives.write()
    return built


if __name__ == "__main__":
    setup(ext_modules=bundles(), cmdclass={"build_ext": Build, "build_py": BuildPython})
