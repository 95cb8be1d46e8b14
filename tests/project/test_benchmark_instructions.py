"""The command that counts instructions, without valgrind."""

import pytest

from benchmarks import instructions

PRINTED = """Ir
--------------------------------------------------------------------------------
1,100,000 (100.0%)  PROGRAM TOTALS

 500,000 (45.45%)  ???:__pyx_f_6cygrad_4core_7execute_3run_run [/x/cygrad/_modules.cpython-311.so]
 100,000 ( 9.09%)  ???:__pyx_tp_dealloc_6cygrad_4core_5graph_6tensor_Node'2 [/x/cygrad/_modules.cpython-311.so]
 200,000 (18.18%)  ???:__Pyx_TypeTest [/x/cygrad/_modules.cpython-311.so]
 200,000 (18.18%)  ???:__pyx_f_6cygrad_7kernels_6driver_each [/x/cygrad/kernels/_avx2.cpython-311.so]
 100,000 ( 9.09%)  /build/Objects/object.c:_Py_NewReference [/usr/lib/libpython3.11.so.1.0]
"""


def test_a_function_belongs_to_the_folder_in_its_name():
    found, named = instructions.counts(PRINTED)
    parts = [*instructions.PARTS]
    assert named and {parts.index(part): n for part, n in found.items()} == {
        0: 200_000, 2: 100_000, 3: 500_000, 6: 200_000, 7: 100_000}


def test_a_build_without_symbols_is_noticed():
    stripped = PRINTED.replace("__pyx_f_6cygrad_4core_7execute_3run_run", "0x000000000001f0")
    assert instructions.counts(PRINTED)[1] and not instructions.counts(stripped)[1]


def test_the_loop_is_not_counted():
    part = [*instructions.PARTS][3]
    table = instructions.table({instructions.LOOP: {part: 40.0}, instructions.PLAIN: {part: 1540.4}})
    assert f"| {part} | 1,500 |" in table and table.endswith("| all | 1,500 |\n")


def test_every_workload_makes_as_many_operations():
    for name, f in instructions.workloads().items():
        y = f()
        if name == instructions.RECORDED: assert y.requires_grad
        if name == instructions.PLAIN: assert not y.requires_grad and y.item() == 1


def test_without_valgrind_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="valgrind .* is not installed; install it"):
        instructions.measured(instructions.PLAIN)
