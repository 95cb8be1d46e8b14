cdef list run_pass(list roots, list numbers, list gradients, bint retain, bint graph, list captures, str strict,
                   int mode)
