/* What every operation asks of its thread, in one struct so that it is read once. It lives in core/thread_state.pyx alone. */
#ifndef CYGRAD_FLAGS_H
#define CYGRAD_FLAGS_H

struct cg_flags {
    int recording;
    int training;
    int passes;    /* backward passes that this thread is in, nested ones counted */
    void *tape;    /* the innermost open tape (a borrowed core.graph.Tape), or NULL */
    void *scope;   /* the innermost open memory.scope() (counted), or NULL */
    void *capture; /* a borrowed list that takes note of every operation, or NULL */
    void *pack;    /* a borrowed pair (pack, unpack) that has all that is kept for backward, or NULL */
    void *collector; /* a borrowed core.engine.Collected: the open GradientCollector's, or NULL */
    int anomaly;   /* detect_anomaly scopes that are open: nodes know their lines, gradients are searched for NaN */
    void *op;      /* the innermost operator that runs, or a str that names what else does; borrowed, or NULL */
    void *node;    /* the node whose turn it is in the innermost backward pass; borrowed, or NULL */
    int telling;   /* whether it is in a listener to memory events */
    void *inputs;  /* a borrowed tuple: what the innermost Function.forward was given, which it may write; or NULL */
};

#endif
