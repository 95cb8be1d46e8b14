#ifndef CYGRAD_VIEWS_H
#define CYGRAD_VIEWS_H

#include "cygrad/platform.h"

/* A contiguous memoryview of one dimension, as Cython passes it by value: eleven words in memory. */
typedef struct {
    void *memview;
    char *data;
    Py_ssize_t shape[3], strides[3], suboffsets[3];
} cg_view;
_Static_assert(sizeof(cg_view) == 11 * sizeof(void *), "a memoryview is passed as eleven words");

#define CG_VIEW(p, n) ((cg_view){(void *)Py_None, p, {n, 1, 1}, {1, 1, 1}, {-1, -1, -1}})

/* Call the kernel f with memoryviews of n elements at p[0], p[1] ...

   In a function that may use vectors, gcc writes the words of a memoryview one by one and then copies them as vectors
   of 64 bytes to where the kernel reads them. Such a load waits until all stores before it are in the cache: a kernel
   on one element takes 28 ns. Without vectors each word is pushed, and it takes 17. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, target("general-regs-only")))
#endif
static void cg_call(void *f, int operands, char **p, Py_ssize_t n)
{
    typedef cg_view v;
    if (operands == 2) ((void (*)(v, v))f)(CG_VIEW(p[0], n), CG_VIEW(p[1], n));
    else if (operands == 3) ((void (*)(v, v, v))f)(CG_VIEW(p[0], n), CG_VIEW(p[1], n), CG_VIEW(p[2], n));
    else if (operands == 4)
        ((void (*)(v, v, v, v))f)(CG_VIEW(p[0], n), CG_VIEW(p[1], n), CG_VIEW(p[2], n), CG_VIEW(p[3], n));
    else
        ((void (*)(v, v, v, v, v))f)(CG_VIEW(p[0], n), CG_VIEW(p[1], n), CG_VIEW(p[2], n), CG_VIEW(p[3], n),
                                     CG_VIEW(p[4], n));
}

#endif
