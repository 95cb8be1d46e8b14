"""All compiled code called with wrong types raises exceptions and never crashes (tests/support/wrongtypes.py)."""

import subprocess
import sys
from pathlib import Path

import cygrad as cg


def test_no_call_with_wrong_types_crashes(tmp_path):
    script = Path(__file__).parents[1] / "support" / "wrongtypes.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=500,
                         cwd=tmp_path)                # some calls write a file
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout.split()[-2]) > 20_000


def test_classes_without_arguments_take_none():
    """(A compiled class without __init__ would accept any arguments.)"""
    import inspect

    wrong = []
    for module in (cg, cg.autograd, cg.memory, cg.optim, cg.random, cg.testing):
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or not kind.__module__.startswith("cygrad") or issubclass(kind, Exception):
                continue
            if kind is cg.optim.Solver: continue    # subclasses define their own arguments
            try: kind(*range(20))
            except (TypeError, RuntimeError): continue      # (a Function is not instantiated)
            wrong.append(name)
    assert not wrong, wrong


def test_methods_of_compiled_classes_check_their_self():
    """A Cython function in place of a method descriptor would accept anything as self. (Methods that are added to
    Tensor or Node are module functions: Cython checks the type of their first argument.)"""
    import inspect
    import pkgutil

    wrong = []
    for found in pkgutil.walk_packages(cg.__path__, "cygrad."):
        if found.name.endswith("__main__") or ".demo" in found.name: continue
        module = __import__(found.name, fromlist=["_"])
        for kind in vars(module).values():
            if not inspect.isclass(kind) or not kind.__module__.startswith("cygrad") or kind.__flags__ & (1 << 9):
                continue                            # (Python functions, made at run time, check themselves)
            wrong += [f"{kind.__module__}.{kind.__name__}.{name}" for name, f in vars(kind).items()
                      if type(f).__name__ == "cython_function_or_method" and "." in f.__qualname__]
    assert not wrong, "decorate these classes with @cython.binding(False): " + ", ".join(sorted(set(wrong)))
