"""What is around a step, beside its arguments, and decides what eager code does in it. A program has the calls of one
run of a function, so it must follow what has changed since. It does so in one of these ways:

    kept        the program was made for it; where it differs, another program is made
    eager       only eager code can do it, so eager code runs
    read        each run reads it
    refused     it raises an error that names it
    fixed       the definition of a net has it: operators, arguments, net.constants, net.training

A net that runs in a Workspace makes programs and calls eager code by itself. A Program that is used directly has one
function and one trace: it raises RuntimeError, which names the difference, for what is kept and what is eager.

    GradientCollector       eager, if a pass writes to .grad
    hooks on variables      eager; refused by a capture and by Net.plan
    fused updates           kept; eager while they accumulate, and for rules with norms
    hooks on older graphs   eager; refused by a capture
    detect_anomaly          eager
    saved_tensors_hooks     eager
    checkpoint              eager; in a captured function its operators are calls of the program
    memory.budget           eager
    memory.offload          eager
    grad_req                kept; refused where a tensor has become a variable, or a variable is none any more
    stype                   kept
    mode                    kept by a net that has none (net.training is None), else fixed
    recording               fixed: a run records nothing
    default dtype           kept; fixed where a captured net lists a cast to it
    solver parameters       kept
    solver settings         read: learning rates, decay, t and states
    generators              read: key and counter
    values                  read: variables, states, running statistics
    .grad                   read: its memory, its graph, None; refused where it is a GradientSlice or not contiguous
    .grad that gets rows    kept: a tensor, or not
    fresh_grad              read, with what an earlier pass left incomplete
    versions                read: a pass through an older graph is refused where that was freed or written
    memory.limit            read: what a run takes from the system counts
    memory.scope            read: the memory of a workspace and of a program is not made inside
    number of threads       read: each kernel takes as many as its workspace has room for
    CYGRAD_CHECK_SAVED      not needed in run(), in which no Python code can write; forward() and backward() compare

An older graph is one that was recorded before the function ran. What is compared at each run are the scopes of the
thread and a count of changes to all else, so a run in which nothing has changed compares a few numbers."""

cimport cython
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport uint64_t

from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.extras cimport consumer_in, extras_of
from cygrad.core.graph.slots cimport Slot, buffer_in, was_written
from cygrad.core.graph.tensor cimport EXTRAS, FREED, NULL_REQ, next_number, node_of, slots_of
from cygrad.core.store cimport layout as lay
from cygrad.core.thread_state cimport ANOMALIES, Flags, flags

from cygrad.core.dtypes import DTYPES, default_dtype_reads

cdef uint64_t count = 0

REQUESTS = ("null", "write", "add")                 # by GradReq


cdef void changed() noexcept:
    """Call this after a change of a grad_req, an stype, the hooks of a variable, or the parameters of a solver."""
    global count
    count += 1


cdef bint is_hooked(Node node) noexcept:
    """Whether a node, or the variable of a Leaf, has hooks. What takes its gradients (core/backward/consumer.pxd) is
    none: a program does so too."""
    cdef dict hooks = extras_of(node).hooks if node.flags & EXTRAS else None
    if hooks is None: return False
    for kind, registered in hooks.items():
        if registered and kind != "consumed": return True
    return False


cdef Leaf leaf_of(Tensor x):
    """The accumulator of a tensor that is or was a variable, or None."""
    cdef Node node = node_of(x)
    return <Leaf>node if node is not None and node.op is None else None


cdef tuple role_of(Tensor x):
    """(the grad_req of a tensor, whether its gradient is to be row-sparse)"""
    cdef Leaf leaf = leaf_of(x)
    return (<int>NULL_REQ, False) if leaf is None else (leaf.req, bool(leaf.sparse))


cdef str obstacle(const Flags* f, bint gradients):
    """The open scope of the thread in which only eager code does what is right, or None. `gradients`: the step writes
    to the .grad of variables."""
    if gradients and f.collector != NULL: return "a GradientCollector is open in this thread"
    if f.inspecting & ANOMALIES: return "detect_anomaly() is open in this thread"
    if f.pack != NULL: return f"{(<object>f.pack).scope} is open in this thread"
    return None


cdef str hooked(Tensor x):
    cdef Leaf leaf = leaf_of(x)
    if leaf is None or not is_hooked(leaf): return None
    return f"a variable of shape {x.shape} has a hook"


def eager_reason(variables, bint passes, bint gradients):
    """Why only eager code can run a step now, for an error: an open scope, or a hook on one of the variables. None if a
    program can. `passes`: the step has backward passes. `gradients`: these write to the .grad of variables."""
    found = obstacle(flags(), gradients)
    return hook_on(variables) if found is None and passes else found


def hook_on(variables):
    """The first of the variables that has a hook, for an error, or None."""
    for x in variables:
        if type(x) is Tensor and hooked(<Tensor>x) is not None: return hooked(<Tensor>x)
    return None


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Around:
    def __cinit__(self):
        self.tensors, self.reached, self.rows, self.nodes, self.solvers = {}, [], [], [], []
        self.first, self.changes, self.dtype_reads = next_number(), count, default_dtype_reads()
        self.training = self.dtype = -1

    # ---- during the trace

    cdef int read(self, Tensor x) except -1:
        """A recorded operation reads a tensor from outside."""
        key = <size_t><void*>x
        if key not in self.tensors: self.tensors[key] = PyWeakref_NewRef(x, None), role_of(x)
        return 0

    cdef int reach(self, Leaf leaf) except -1:
        """A pass reaches a variable from outside."""
        x = <Tensor>leaf.tensor
        self.read(x)
        self.reached.append((PyWeakref_NewRef(x, None), consumer_in(leaf)))
        return 0

    cdef bint is_older(self, Node node) noexcept:
        """Whether a node was recorded before the trace."""
        return node.seq < self.first

    def use_solver(self, solver):
        """A step calls a method of a solver."""
        if any([s is solver for s, _ in self.solvers]): return
        self.solvers.append((solver, [PyWeakref_NewRef(x, None) for x in solver.get_parameters().values()]))

    cdef int finish(self) except -1:
        """The trace ends."""
        if default_dtype_reads() != self.dtype_reads: self.dtype = default_dtype()
        return 0

    # ---- at a run

    cdef str difference(self, bint resumes):
        """What is not as it was in the trace, for an error, or None. `resumes`: the forward part has run."""
        cdef const Flags* f = flags()
        cdef str found = obstacle(f, self.gradients)
        if found is not None: return found
        if not resumes:
            if self.training >= 0 and self.training != (f.training != 0):
                now, before = ("train", "predict") if f.training else ("predict", "train")
                return f"this thread is in {now} mode and was in {before} mode"
            if self.dtype >= 0 and self.dtype != default_dtype():
                return f"the default dtype is {DTYPES[default_dtype()]} and was {DTYPES[self.dtype]}"
        if self.rows: found = self.other_gradient()
        if found is None and self.nodes: found = self.older_graph()
        if found is not None or self.changes == count: return found
        found = self.changed_role()
        if found is None: self.changes = count
        return found

    cdef str changed_role(self):
        """What has changed of tensors and solvers."""
        cdef Tensor x
        for reference, consumer in self.reached:
            found = reference()
            if type(found) is not Tensor: continue
            x = <Tensor>found
            if hooked(x) is not None: return hooked(x)
            if leaf_of(x) is None or consumer_in(leaf_of(x)) is consumer: continue
            now, before = ("fused into backward", "not") if consumer is None else ("others", "fused into backward")
            return f"the updates of a variable of shape {x.shape} are {now} and were {before}"
        for reference, before in self.tensors.values():
            found = reference()
            if type(found) is not Tensor: continue  # (it was freed)
            x = <Tensor>found
            now = role_of(x)
            if now == before: continue
            if not now[0]: return f"a tensor of shape {x.shape} is no variable and was one"
            if not before[0]: return f"a tensor of shape {x.shape} is a variable and was none"
            if now[0] == before[0]: return f"the stype of a variable of shape {x.shape} is another one"
            return (f"the grad_req of a variable of shape {x.shape} is \"{REQUESTS[now[0]]}\" and was "
                    f"\"{REQUESTS[before[0]]}\"")
        for solver, parameters in self.solvers:
            now = [*solver.get_parameters().values()]
            if len(now) != len(parameters) or any([r() is not y for r, y in zip(parameters, now)]):
                return f"the parameters of the solver {type(solver).__name__} are other ones"
        return None

    cdef str other_gradient(self):
        """Whether rows go to a tensor in .grad now, and became the .grad then, or the reverse."""
        cdef Leaf leaf
        for leaf, dense in self.rows:
            if (leaf.grad is not None) == dense: continue
            now, before = ("a tensor", "none") if leaf.grad is not None else ("none", "a tensor")
            return (f"the .grad of a variable of shape {lay.shape_tuple(leaf.layout)}, to which rows are added, is "
                    f"{now} and was {before}")
        return None

    cdef str older_graph(self):
        """Why a pass cannot go through the nodes that were recorded before the trace."""
        cdef Node node
        cdef Slot* s
        cdef int k
        for node in self.nodes:
            if node.state == FREED: return f"the graph of {node.name()}, recorded outside, was freed"
            if is_hooked(node): return f"{node.name()}, recorded outside, has a hook"
            s = slots_of(node)
            for k in range(node.n_slots):
                if buffer_in(&s[k]) != NULL and was_written(&s[k]):
                    return f"a tensor that {node.name()}, recorded outside, needs was written"
        return None
