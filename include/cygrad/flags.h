/* The state of a thread that operations need, in one struct, so that an operation looks it up once. The only variable
   of this type is in core/thread_state.pyx. A pointer is NULL if there is no object. `tape`, `scope`, `pack` and
   `collector` are strong references. The other pointers are borrowed; the function that sets one holds the object. */
#ifndef CYGRAD_FLAGS_H
#define CYGRAD_FLAGS_H

struct cg_flags {
    int recording;
    int training;
    int passes;      /* number of backward passes that run in this thread, including nested ones */
    void *tape;      /* the innermost open tape, a core.graph.tape.Tape */
    void *scope;     /* the innermost open memory.scope(), a core.graph.freed.scope */
    void *trace;     /* the open trace, a core.graph.trace.Trace: nothing is computed, and allocations are virtual */
    int values;      /* number of open requests for real memory during a trace */
    void *pack;      /* what is saved for backward instead of tensors: a core.graph.packing.Packing */
    void *collector; /* a core.backward.gradients.Collected, that of the open GradientCollector */
    int inspecting;  /* what is done with each operation besides running it: see core/thread_state.pxd */
    void *op;        /* the operator that runs, or a str that names other work; the innermost one */
    void *node;      /* the node that the innermost backward pass processes */
    int telling;     /* whether a listener to memory events runs */
    void *inputs;    /* the tuple of inputs of the innermost Function.forward, which forward may write to */
    int lifting;     /* number of levels of cg.func that operations see: the first of the thread's (core/graph/lifts) */
};

#endif
