"""The state of a thread: recording and training flags, the open tape and scopes, and what runs now."""

cdef extern from "cygrad/flags.h":
    ctypedef struct Flags "struct cg_flags":
        int recording
        int training
        int passes
        void* tape
        void* capture
        void* scope
        void* pack
        void* collector
        int anomaly
        void* op
        void* node
        int notifying
        void* inputs

cdef Flags* flags() noexcept nogil
