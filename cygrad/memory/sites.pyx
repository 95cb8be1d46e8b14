"""Sites: the subject of a memory event as a number. A site is an operation with its Python stack, the shape that it
allocated, and the layer that runs or, in backward and for packed signs, that recorded the node. A stack is a path in a
tree of frames. If it shares outer frames with the previous stack, each of these costs one comparison; a new frame is
added to the tree once. Code objects stay alive, frames do not. Line numbers are computed when a report is made."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy, memmove

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.signs cimport packed
from cygrad.core.graph.tensor cimport Node
from cygrad.core.store.buffer cimport shaping
from cygrad.core.thread_state cimport Flags
from cygrad.core.graph.slots cimport OWN, Slot, sign_bits
from cygrad.core.source cimport ours
from cygrad.kernels.array cimport MAX_NDIM, Layout

from cygrad.core.dtypes import DTYPES
from cygrad.core.source import line_of

cdef extern from "cygrad/frames.h":
    ctypedef struct Frame "cg_frame":
        void* at
    int cg_stack(Frame* stack, int max_frames)
    void* cg_code(const Frame* f)
    int cg_instruction(const Frame* f)

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef extern from *:
    """
    #include "cygrad/platform.h"
    static CG_THREAD_LOCAL PyObject *cg_layer;
    """
    PyObject* cg_layer      # the layer that this thread runs, a tuple that begins with its path; NULL: none. Strong.

cdef enum:
    DEEPEST = 256           # the maximum number of frames of a stack; the innermost ones are kept
    CUT = 1                 # the frame number that represents the frames beyond these
    RECENT = 512            # the size of the caches of recent sites and shapes
    MOST_TURNS = 1 << 16    # the maximum number of turns in memory; older ones are forgotten

cdef enum:                  # the role of a site: bits
    BACKWARD_SITE = 1       # the backward of the operation
    KEEPER = 2              # the operation saves a buffer for backward; Slot.source is in the bits from 8 on
    ONE_INPUT = 4
    ONE_OUTPUT = 8
    SIGN_BITS = 16          # it saves one bit per element

cdef struct Child:          # an edge of the tree of frames
    void* at                # the instruction, in its code object; NULL: none
    uint32_t parent
    uint32_t number         # number of the frame; for a frame of the package, which reports omit, that of its parent

cdef struct Level:          # a frame of the previous stack, from the outermost on
    void* at
    uint32_t number

cdef struct KnownSite:
    void* what
    uint32_t role
    uint32_t stack
    uint32_t shape
    uint32_t layer
    uint32_t number

cdef struct Turn:           # nodes from this one on, in the order of recording, belong to a layer
    uint64_t seq
    uint32_t layer

cdef struct KnownShape:
    uint32_t number         # 0: none
    int dtype
    int ndim
    Py_ssize_t shape[MAX_NDIM]

cdef tuple UNNAMED = ("tensor", "gradient", "solver state", "tensor", "tensor", "tensor")   # without an operator

cdef list others = []       # code objects of the package in the tree
cdef dict numbers = {}      # (operator or name, role, stack, shape, layer), the first by identity -> index into `sites`
cdef dict shape_numbers = {}        # (sizes, dtype) -> index into `shapes`
cdef Child* children = NULL
cdef size_t places = 0, taken = 0   # the capacity of `children`, a power of two, and how many are in use
cdef Level last[DEEPEST]    # the previous stack
cdef int depth = 0          # depth of `last`
cdef bint cut = False       # whether the previous stack had more frames
cdef KnownSite recent[RECENT]
cdef KnownShape recent_shapes[RECENT]
cdef dict layer_numbers = {}        # path -> index into `layers`
cdef object known_layer = ""        # the path that was looked up last, and its number
cdef uint32_t known_number = 0
cdef Turn* turns = NULL
cdef size_t n_turns = 0, most_turns = 0
cdef size_t last_turn = 0   # that layer_of() found last

sites, frames, shapes, layers = [], [], [], [""]


cdef int begin_sites() except -1:
    """Reset all tables when the first log opens. Earlier logs keep their own lists."""
    global sites, frames, shapes, others, numbers, shape_numbers, children, places, taken, depth, cut
    global layers, layer_numbers, known_layer, known_number, n_turns
    cdef Child* fresh = <Child*>PyMem_RawCalloc(1024, sizeof(Child))
    if fresh == NULL: raise MemoryError("no memory for a profile")
    PyMem_RawFree(children)
    children, places, taken, depth, cut = fresh, 1024, 0, 0, False
    sites, frames, shapes = [("", 0, 0, 0, 0)], [None, None], [None]
    others, numbers, shape_numbers = [], {}, {}
    layers, layer_numbers, known_layer, known_number, n_turns = [""], {"": 0}, "", 0, 0
    for k in range(RECENT): recent[k].what, recent_shapes[k].number = NULL, 0


# ---- stacks ----------------------------------------------------------------------------------------------------------

cdef inline Child* place_of(Child* table, size_t size, uint32_t parent, void* at) noexcept:
    """The entry of an edge in the table, or the free entry for it."""
    cdef size_t k = (<size_t>at >> 1 ^ <size_t>parent << 20) * <size_t>0x9E3779B97F4A7C15 >> 24 & (size - 1)
    while table[k].at != NULL and (table[k].at != at or table[k].parent != parent): k = (k + 1) & (size - 1)
    return &table[k]


cdef int widen() noexcept:
    """Double the capacity for edges. Returns -1 if there is no memory."""
    global children, places
    cdef size_t k
    cdef Child* more = <Child*>PyMem_RawCalloc(2 * places, sizeof(Child))
    if more == NULL: return -1
    for k in range(places):
        if children[k].at != NULL: place_of(more, 2 * places, children[k].parent, children[k].at)[0] = children[k]
    PyMem_RawFree(children)
    children = more
    places *= 2
    return 0


cdef uint32_t child(uint32_t parent, const Frame* f) noexcept:
    """The number of a frame that `parent` called (0: it is the outermost). If there is no memory, the number of
    `parent`."""
    global taken
    cdef Child* c
    cdef uint32_t number = parent
    cdef bint collects
    c = place_of(children, places, parent, f.at)
    if c.at != NULL: return c.number
    if 2 * taken >= places:
        if widen() < 0: return parent
        c = place_of(children, places, parent, f.at)
    collects = PyGC_Disable()                       # a collection could free tensors, which would add events here
    try:
        code = <object>cg_code(f)
        if ours(code.co_filename): others.append(code)      # (keeps it alive, so that its address is not reused)
        else:
            frames.append((parent, code, cg_instruction(f)))
            number = <uint32_t>len(frames) - 1
    except MemoryError:
        return parent
    finally:
        if collects: PyGC_Enable()
    c.at, c.parent, c.number = f.at, parent, number
    taken += 1
    return number


cdef uint32_t stack_now() noexcept:
    """The number of the current Python stack without frames of the package; 0 if there is no frame."""
    global depth, cut
    cdef Frame stack[DEEPEST + 1]
    cdef int k = 0, n = cg_stack(stack, DEEPEST + 1)
    cdef bint more = n > DEEPEST
    cdef uint32_t number = CUT if more else 0
    if more: n = DEEPEST
    if more != cut: depth, cut = 0, more
    while k < n and k < depth and last[k].at == stack[n - 1 - k].at: k += 1
    if k: number = last[k - 1].number
    depth = k
    while k < n:
        number = child(number, &stack[n - 1 - k])
        last[k].at, last[k].number = stack[n - 1 - k].at, number
        k += 1
        depth = k
    return number


# ---- shapes and sites ------------------------------------------------------------------------------------------------

cdef uint32_t shape_now() noexcept:
    """The number of the shape and dtype that is being allocated; 0 if it is not a tensor."""
    cdef const Layout* l = shaping.layout
    cdef KnownShape* s
    cdef size_t mixed
    cdef bint collects
    if l == NULL: return 0
    mixed = shaping.dtype
    for d in range(l.ndim): mixed = mixed * 31 + <size_t>l.shape[d]
    s = &recent_shapes[(mixed ^ mixed >> 9) % RECENT]
    if s.number and s.dtype == shaping.dtype and s.ndim == l.ndim:
        if memcmp(s.shape, l.shape, l.ndim * sizeof(Py_ssize_t)) == 0: return s.number
    collects = PyGC_Disable()
    try:
        key = lay.shape_tuple(l), DTYPES[shaping.dtype].name
        number = shape_numbers.get(key)
        if number is None:
            shapes.append(key)
            number = shape_numbers[key] = len(shapes) - 1
    except MemoryError:
        return 0
    finally:
        if collects: PyGC_Enable()
    s.number, s.dtype, s.ndim = number, shaping.dtype, l.ndim
    memcpy(s.shape, l.shape, l.ndim * sizeof(Py_ssize_t))
    return s.number


cdef uint32_t site_of(void* what, uint32_t role, uint32_t stack, uint32_t shape, uint32_t layer) noexcept:
    """The number of the site of an operator or name, a role, a stack, a shape and a layer; 0 if there is no memory for
    it."""
    cdef uintptr_t mixed = (<uintptr_t>what >> 4 ^ <uintptr_t>stack * 37 ^ <uintptr_t>role * 5 ^ <uintptr_t>shape * 11
                            ^ <uintptr_t>layer * 73)
    cdef KnownSite* s = &recent[(mixed ^ mixed >> 9) % RECENT]
    cdef bint collects
    if s.what == what and s.stack == stack and s.role == role and s.shape == shape and s.layer == layer:
        return s.number
    collects = PyGC_Disable()
    try:
        key = <uintptr_t>what, role, stack, shape, layer
        number = numbers.get(key)
        if number is None:
            sites.append((<object>what, role, stack, shape, layer))
            number = numbers[key] = len(sites) - 1
    except MemoryError:
        return 0
    finally:
        if collects: PyGC_Enable()
    s.what, s.role, s.stack, s.shape, s.layer, s.number = what, role, stack, shape, layer, number
    return s.number


# ---- layers ----------------------------------------------------------------------------------------------------------

cdef tuple set_layer(tuple layer):
    """Set the layer that this thread runs: a tuple that begins with its path, or None. Returns the previous one.
    cygrad.nn calls it while a log is open."""
    global cg_layer
    cdef tuple before = None if cg_layer == NULL else <tuple>cg_layer
    Py_XDECREF(cg_layer)
    cg_layer = NULL
    if layer is not None:
        Py_INCREF(layer)
        cg_layer = <PyObject*>layer
    return before


cdef uint32_t layer_now() noexcept:
    """The number of the layer that this thread runs; 0 if there is none, or no memory for it."""
    global known_layer, known_number
    cdef bint collects
    if cg_layer == NULL: return 0
    path = (<tuple>cg_layer)[0]
    if path is known_layer: return known_number
    collects = PyGC_Disable()                       # a collection could free tensors, which would add events here
    try:
        number = layer_numbers.get(path)
        if number is None:
            layers.append(path)
            number = layer_numbers[path] = len(layers) - 1
    except MemoryError:
        return 0
    finally:
        if collects: PyGC_Enable()
    known_layer, known_number = path, number
    return known_number


cdef void recorded(Node node) noexcept:
    """Note which layer has recorded a node."""
    global turns, n_turns, most_turns
    cdef uint32_t layer = layer_now()
    cdef Turn* more
    if layer == (turns[n_turns - 1].layer if n_turns else 0): return
    if n_turns == most_turns and most_turns < MOST_TURNS:
        more = <Turn*>PyMem_RawRealloc(turns, (2 * most_turns + 64) * sizeof(Turn))
        if more != NULL: turns, most_turns = more, 2 * most_turns + 64
    if n_turns == most_turns:
        n_turns -= n_turns // 2
        memmove(turns, turns + most_turns - n_turns, n_turns * sizeof(Turn))
        if not most_turns: return
    turns[n_turns].seq, turns[n_turns].layer = node.seq, layer
    n_turns += 1


cdef inline bint is_turn_of(size_t turn, uint64_t seq) noexcept:
    """Whether a turn has recorded the node with this number."""
    return turn < n_turns and turns[turn].seq <= seq and (turn + 1 == n_turns or seq < turns[turn + 1].seq)


cdef uint32_t layer_of(Node node) noexcept:
    """The number of the layer that has recorded a node; 0 if there is none or it is forgotten. Backward goes from node
    to node against the order of recording, so the turn is mostly that of the last answer, or the one before."""
    global last_turn
    cdef size_t low = 0, high = n_turns, middle     # turns before `low` begin at or before the node
    if last_turn and is_turn_of(last_turn - 1, node.seq): last_turn -= 1
    if is_turn_of(last_turn, node.seq): return turns[last_turn].layer
    while low < high:
        middle = (low + high) // 2
        if turns[middle].seq <= node.seq: low = middle + 1
        else: high = middle
    if not low: return 0
    last_turn = low - 1
    return turns[last_turn].layer


cdef uint32_t site_now(const Flags* f, int category) noexcept:
    """The number of the current site, for an allocation of a category."""
    cdef void* what
    if packed != NULL:                        # (which happens while another layer runs)
        return site_of(f.op, 0, stack_now(), shape_now(), layer_of(<Node>packed))
    if f.node != NULL: what = <void*>(<Node>f.node).op
    else: what = f.op if f.op != NULL else <void*>UNNAMED[category]
    if f.node != NULL: return site_of(what, BACKWARD_SITE, stack_now(), shape_now(), layer_of(<Node>f.node))
    return site_of(what, 0, stack_now(), shape_now(), layer_now())


cdef uint32_t keeper(Node node, const Slot* s) noexcept:
    """The number of the site that has the reason why a node saves the content of a slot, and the node's layer."""
    cdef uint32_t role = KEEPER | <uint32_t>s.source << 8
    if node.n_in == 1: role |= ONE_INPUT
    if node.n_out == 1: role |= ONE_OUTPUT
    if sign_bits(s) != NULL: role |= SIGN_BITS
    return site_of(<void*>node.op, role, 0, 0, layer_of(node))


# ---- reading the numbers ---------------------------------------------------------------------------------------------

ORDINALS = ("first", "second", "third")
BEYOND = ("", 0, f"(callers beyond {DEEPEST} frames)")         # represents them in a stack


def operation(site):
    """The name of a site's operation: "mul", "mul (backward)", "tensor"."""
    what, role = site[:2]
    if isinstance(what, str): return what
    return ".grad" if what is None else what.name + " (backward)" * (role & BACKWARD_SITE)


def reason(site):
    """The reason why a site saves a buffer, such as "gelu needs its input"."""
    what, role = site[:2]
    source = role >> 8
    if source & OWN: one, place, kind = role & ONE_OUTPUT, source & ~OWN, "output"
    else: one, place, kind = role & ONE_INPUT, source, "input"
    if not source & OWN and source >= OWN - 1: return f"{what.name} needs what it saved"
    numbered = f"{ORDINALS[place]} {kind}" if place < len(ORDINALS) else f"{kind} {place}"
    signs = "the signs of " if role & SIGN_BITS else ""
    return f"{what.name} needs {signs}its {kind if one else numbered}"


def stack(frames, number):
    """The (file, line, function) of each frame of a stack, the outermost first."""
    cdef list out = []
    while number:
        if number == CUT:
            out.append(BEYOND)
            break
        number, code, instruction = frames[number]
        out.append((code.co_filename, line_of(code, instruction), code.co_name))
    out.reverse()
    return out
