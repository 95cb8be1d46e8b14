#ifndef CYGRAD_VIEWS_H
#define CYGRAD_VIEWS_H

#include "cygrad/platform.h"

/* Memoryviews that stay in memory, in the array `v` of CG_VIEW_WORDS words for each: to set one, to move it by so many
   bytes, to set its length, and to call a kernel with the first 2 to 5. A call that makes its memoryviews writes them in
   parts and reads them as a whole, so it waits until all that the kernel before it has stored is in the cache: 30 ns.
   Those that stay are moved long before they are read. */
#define CG_VIEW_WORDS 11
#define CG_KEPT(v, k) (((__Pyx_memviewslice *)(v))[k])
#define CG_KEEP_VIEW(v, k, p, n) (CG_KEPT(v, k) = CG_VIEW1((char *)(p), n))
#define CG_MOVE_VIEW(v, k, nbytes) (CG_KEPT(v, k).data += (nbytes))
#define CG_CUT_VIEW(v, k, n) (CG_KEPT(v, k).shape[0] = (n))
#define CG_V __Pyx_memviewslice
#define CG_CALL_KEPT(f, n, v)                                                                                        \
    ((n) == 2   ? ((void (*)(CG_V, CG_V))(f))(CG_KEPT(v, 0), CG_KEPT(v, 1))                                          \
     : (n) == 3 ? ((void (*)(CG_V, CG_V, CG_V))(f))(CG_KEPT(v, 0), CG_KEPT(v, 1), CG_KEPT(v, 2))                     \
     : (n) == 4 ? ((void (*)(CG_V, CG_V, CG_V, CG_V))(f))(CG_KEPT(v, 0), CG_KEPT(v, 1), CG_KEPT(v, 2),               \
                                                         CG_KEPT(v, 3))                                              \
                : ((void (*)(CG_V, CG_V, CG_V, CG_V, CG_V))(f))(CG_KEPT(v, 0), CG_KEPT(v, 1), CG_KEPT(v, 2),         \
                                                               CG_KEPT(v, 3), CG_KEPT(v, 4)))

#endif
