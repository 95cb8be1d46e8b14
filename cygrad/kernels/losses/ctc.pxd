from libc.stdint cimport int64_t

cdef struct Ctc:                # the job of ctc_loss
    int dtype
    Py_ssize_t steps            # log_probs is (steps, samples, classes)
    Py_ssize_t samples
    Py_ssize_t classes
    Py_ssize_t longest          # length of the longest target
    const char* x               # log_probs
    const int64_t* input_lengths
    const int64_t* target_lengths
    const int64_t* starts       # the first label of each sample in `targets`
    const int64_t* targets
    Py_ssize_t n_targets
    int64_t blank
    char* loss                  # one a sample; NULL: gradients are wanted
    const char* g               # one a sample
    char* dx
    bint zero_infinity
    Py_ssize_t part             # samples of a part, which one thread processes
    char* workspace

cdef size_t part_bytes(const Ctc* c, bint backward) noexcept nogil
cdef void ctc(Ctc* c) noexcept nogil
