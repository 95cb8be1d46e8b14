"""What the build knew: the C compiler and what it was told."""

cdef extern from "cygrad/platform.h":
    const char* CG_COMPILER
    const int CG_HAVE_OPENMP, CG_DEBUG, CG_SANITIZED
    int omp_get_num_procs()


def built():
    """Compiler and switches, as a dict."""
    return {"compiler": (<bytes>CG_COMPILER).decode(), "openmp": bool(CG_HAVE_OPENMP), "debug": bool(CG_DEBUG),
            "address sanitizer": bool(CG_SANITIZED)}


def processors():
    """How many the system lets this process have."""
    return omp_get_num_procs()
