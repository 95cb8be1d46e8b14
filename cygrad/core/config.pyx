"""Facts about the build: the C compiler and its switches."""

cdef extern from "cygrad/platform.h":
    const char* CG_COMPILER
    const int CG_HAVE_OPENMP, CG_DEBUG, CG_SANITIZED
    int omp_get_num_procs()


def built():
    """The compiler and its switches, as a dict."""
    return {"compiler": (<bytes>CG_COMPILER).decode(), "openmp": bool(CG_HAVE_OPENMP), "debug": bool(CG_DEBUG),
            "address sanitizer": bool(CG_SANITIZED)}


def processors():
    """The number of CPUs that this process may use."""
    return omp_get_num_procs()
