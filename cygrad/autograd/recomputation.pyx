"""checkpoint(): values that backward needs are not kept, but made again by their recipes (core/execute/recipes.pxd)."""

from cygrad.core.execute.recipes cimport RecipeScope
from cygrad.core.graph.packed cimport Packing, set_packing
from cygrad.core.late_bound cimport late_bound
from cygrad.core.thread_state cimport RECIPES, Flags, flags

from cygrad.core.errors import described
from cygrad.ops import ROWS

CHECKS = ("metadata", "hash")


def checkpoint(f, *args, determinism_check="metadata", keep=None, **kwargs):
    """f(*args, **kwargs), recorded without the values that backward needs: it keeps only what f reads from outside, its
    arguments and parameters, and makes the values again when backward comes to them. The forward pass takes only the
    memory of what is alive in f, and the backward pass computes the operators of f once more, with the same results bit
    for bit. Outside of record() it only calls f.

        with cg.record():
            h = cg.checkpoint(block, x)

    f runs once as Python code. What backward computes again are its operators, with the positions of the generators
    that they had. What an autograd.Function returns, what random functions such as random.normal() draw, and values
    from NumPy are kept. A variable or another argument that is written in place between f and backward raises
    InplaceError when it is needed. Calls nest: what an inner one has computed is dropped again when an outer one reads
    it. In a captured function (memory.plan, Net.capture) the operators that are computed again are part of the program.

    The results of products can depend on the number of threads, so set it before f. saved_tensors_hooks that are open
    around the call do not see what f saves.

    keep: the name of an operator of the table, or several: their results are kept, since they are dear, such as those
    of "linear" and "scaled_dot_product_attention", and the others computed again. determinism_check: "metadata": shapes
    and dtypes are the same by construction; "hash": each value that is computed again is compared with the checksum of
    the first one (which reads it once more each time), and RuntimeError names the operator if they differ.

    Raises TypeError or ValueError for what cannot be called, another check and unknown operators, before f runs."""
    cdef Flags* t = flags()
    cdef Packing before
    cdef RecipeScope region
    cdef int outside
    if not callable(f): raise TypeError(f"checkpoint takes a function and its arguments, got {described(f)}")
    if not isinstance(determinism_check, str) or determinism_check not in CHECKS:
        raise ValueError(f"checkpoint: determinism_check must be \"metadata\" or \"hash\", got "
                         f"{described(determinism_check)}")
    names = kept_names(keep)
    if not t.recording: return f(*args, **kwargs)
    region = RecipeScope(names, determinism_check == "hash")
    before = <Packing>t.pack if t.pack != NULL else None
    set_packing(t, region)
    outside = t.inspecting & RECIPES
    t.inspecting |= RECIPES
    try: return f(*args, **kwargs)
    finally:
        t.inspecting = t.inspecting & ~RECIPES | outside
        set_packing(t, before)
        region.close()


cdef frozenset kept_names(keep):
    """The names of operators in `keep`, checked."""
    if keep is None: return frozenset()
    names = [keep] if isinstance(keep, str) else keep
    if not isinstance(names, (list, tuple, set, frozenset)) or not all([isinstance(name, str) for name in names]):
        raise TypeError(f"checkpoint: keep must be the name of an operator or a list of names, got {described(keep)}")
    found = set()
    for name in names:
        if name not in ROWS and name not in late_bound.operators:
            raise ValueError(f"checkpoint: keep names {described(name)}, which is no operator; the operators are the "
                             f"rows of cygrad.ops.ROWS, such as \"linear\", \"matmul\" and \"conv2d\"")
        found.add(ROWS[name].operator.name if name in ROWS else name)
    return frozenset(found)
