"""python tools/hips.py: run the tests of HIPS autograd against cygrad.

The tests are those of its source distribution, which pip downloads. tools/hips/autograd takes the place of the package:
its functions are those of cygrad.func, and its NumPy is NumPy. Combinations of arguments with complex numbers are left
out. Prints how many tests of each file pass. Fails if others than those of EXPECTED fail, or if one of them passes."""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TOOLS = Path(__file__).parent
VERSION = "1.8.0"
COMPLEX = "complex dtypes"
INTERNALS = "tests a name of HIPS that NumPy has not, or its internals"
NUMBER = "the function must return a tensor of shape (), so that a gradient is not lost silently"
LISTS = "a list of tensors is not an array: np.stack or cygrad.stack makes one"
TRIANGLE = "eigh reads one triangle, and its gradient is symmetric"
# The tests that fail, by file and reason.
EXPECTED = {
    "numpy": {INTERNALS: "test_make_diagonal test_diagonal",
              LISTS: "test_simple_append_list test_simple_append_list_2D",
              "np.int64(x) of a tensor reads its values, which is refused where a derivative would be lost":
                  "test_cast_to_int"},
    "systematic": {COMPLEX: "test_angle"},
    "wrappers": {INTERNALS: "test_deprecated_defgrad_wrapper test_deprecated_defvjp_wrapper "
                            "test_deprecated_defvjp_is_zero_wrapper test_deprecated_quick_grad_check_wrapper "
                            "test_wrapped_name_and_docs"},
    "linalg": {INTERNALS: "test_pinv",
               TRIANGLE: "test_eigvalh_lower test_eigvalh_upper test_eigvalh_lower_broadcasting "
                         "test_eigvalh_upper_broadcasting",
               COMPLEX: "test_eigvalh_lower_complex test_eigvalh_upper_complex test_eig_real test_eig_complex "
                        "test_eig_batched test_svd_wide_2d_complex test_svd_wide_3d_complex "
                        "test_svd_square_2d_complex test_svd_square_3d_complex test_svd_tall_2d_complex "
                        "test_svd_tall_3d_complex test_svd_only_s_2d_complex test_svd_only_s_3d_complex"},
    "jacobian": {NUMBER: "test_jacobian_against_grad"},
    "binary_ops": {},
    "scalar_ops": {NUMBER: "test_power_arg0"},
    "graphs": {NUMBER: "test_grad_const test_grad_identity test_singleton_array_output "
                       "test_singleton_array_output_axis0 test_singleton_array_output_axis1 "
                       "test_singleton_array_output_axis0_keepdims test_singleton_array_output_axis1_keepdims",
               COMPLEX: "test_complex_mutating_outgrad_from_indexing test_complex_separate_real_and_imaginary",
               "HIPS refuses x[i] = v, which cygrad differentiates": "test_assignment_raises_error"},
    "dict": {}, "list": {}, "tuple": {}, "truediv": {},
}


def source(folder):
    """Download and unpack the source distribution; the folder of its tests."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "autograd",
                    "--dest", folder, f"autograd=={VERSION}"], check=True)
    with tarfile.open(next(folder.glob("autograd-*.tar.gz"))) as archive: archive.extractall(folder, filter="data")
    return folder / f"autograd-{VERSION}" / "tests"


def run(tests, name):
    """(the number of tests that pass, the names of those that fail) of a file."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(TOOLS / "hips"), str(TOOLS.parent)])}
    found = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-c", os.devnull,
                            "--rootdir", tests, tests / f"test_{name}.py"], cwd=tests, env=env, capture_output=True,
                           text=True)
    passed = re.search(r"(\d+) passed", found.stdout)
    return int(passed[1]) if passed else 0, set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", found.stdout, re.M))


def main():
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        tests = source(Path(folder))
        for name, reasons in EXPECTED.items():
            passed, failed = run(tests, name)
            known = {test: why for why, text in reasons.items() for test in text.split()}
            print(f"{name}: {passed} of {passed + len(failed)} pass")
            for why, text in reasons.items(): print(f"    {len(text.split())}: {why}")
            for test in sorted(failed ^ set(known)):
                print(f"    {test} {'fails' if test in failed else 'passes, which was not expected'}")
                wrong = True
    return wrong


if __name__ == "__main__":
    sys.exit(main())
