"""The state of each thread: its recording and training flags, its tape, the scopes that are open in it, and the
operator or node that is running. include/cygrad/flags.h declares the fields."""

cdef extern from "cygrad/flags.h":
    ctypedef struct Flags "struct cg_flags":
        int recording
        int training
        int passes
        void* tape
        void* trace
        int values
        void* scope
        void* pack
        void* collector
        int inspecting
        void* op
        void* node
        int telling
        void* inputs
        int lifting

cdef enum:                  # Flags.inspecting counts open scopes of these kinds
    ANOMALIES = 0xFFFF      # a mask: detect_anomaly
    FORWARD = 1 << 16       # one detect_anomaly(forward=True)
    FORWARDS = 0xFF * FORWARD
    RECIPES = 1 << 24       # a bit: a region of recipes is open

cdef Flags* flags() noexcept nogil
