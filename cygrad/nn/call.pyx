"""CallBase, the base of Module: the call of a layer, which is one C function because it runs once for each layer in
each step. The call of a layer with an empty forward takes 70 ns, 20 of which are those of forward (AMD EPYC, Python
3.11). With hooks, and with sizes that are not known yet, the call goes through the Python function `_watched_call`."""

from cpython.object cimport PyObject

from cygrad.core.graph.tensor cimport Tensor, is_variable, node_of
from cygrad.core.graph.waiting cimport WaitingTensor
from cygrad.memory.log cimport logs
from cygrad.memory.sites cimport layers, set_layer

from weakref import ref

from cygrad.core.errors import module_of
from cygrad.nn.answers import of_layer

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(object args, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(object args)
    object PyObject_VectorcallMethod(object name, PyObject** args, size_t n, void* names)

cdef enum:
    FEW = 6                 # positional arguments that are passed in an array
    MOST_KNOWN = 1024       # outermost modules whose paths are known

cdef object profiled = None     # the paths of the logs that are open, for which `outermost` holds
cdef dict known = {}        # (name around it, id) of an outermost module -> (weak reference, `shape` then, path, paths)
cdef size_t shape = 0       # the number of changes of children in any module
cdef dict outermost = {}    # name -> weak references to the outermost modules of this name, in the order of first calls
cdef str FORWARD = "forward", OURS = "cygrad.nn."


cdef class CallBase:
    """The registries of a module, its mode, and its call. `_parameters`, `_buffers` and `_modules` have the names of
    the module's attributes of each kind, in the order in which they were assigned. They exist before __init__ runs, so
    a subclass need not call it."""
    cdef readonly dict _parameters      # name -> (grad_req, stype) that unfreeze() restores, or None
    cdef readonly dict _buffers         # name -> whether it is part of the state_dict
    cdef readonly dict _modules         # name -> None
    cdef public object _hooks           # None, or [dict of pre-hooks, dict of hooks]
    cdef public object _checkpoint      # None, or the arguments of checkpoint(), through which calls go
    cdef public object _mode            # None: the thread's; True: train; False: predict
    cdef public bint _pending           # whether parameters wait for their sizes

    def __cinit__(self, *args, **kwargs):
        init = type(self).__init__
        if (args or kwargs) and (init is object.__init__ or not hasattr(init, "__module__")
                                 or module_of(init).startswith(OURS)):
            answer = of_layer(type(self), args, kwargs)
            if answer is not None: raise TypeError(answer)
        self._parameters, self._buffers, self._modules = {}, {}, {}

    def __call__(self, *args, **kwargs):
        return self.unnamed_call(args, kwargs) if logs == NULL else self.named_call(args, kwargs)

    cdef inline object unnamed_call(self, tuple args, dict kwargs):
        """The call itself."""
        cdef PyObject* given[FEW + 1]
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(args)
        if self._hooks is not None or self._pending: return self._watched_call(args, kwargs)
        if kwargs or n > FEW: return self.forward(*args, **kwargs)
        given[0] = <PyObject*>self
        for i in range(n): given[i + 1] = PyTuple_GET_ITEM(args, i)
        return PyObject_VectorcallMethod(FORWARD, given, n + 1, NULL)

    cdef object named_call(self, tuple args, dict kwargs):
        """The call while a memory profile is open: its events get the path of this module in the outermost one."""
        cdef tuple before = set_layer(None)
        cdef dict paths
        if before is None: name, paths = None, {}
        else: name, paths = before
        path = paths.get(id(self))                  # None: the outermost call, or one of a module outside of that one
        if path is None: path, paths = paths_below(name, self)
        set_layer((path, paths))
        try:
            return self.unnamed_call(args, kwargs)
        finally:
            set_layer(before)


def children_changed():
    """A module has got, lost or replaced a child."""
    global shape
    shape += 1


cdef tuple paths_below(name, module):
    """(path, {id of each module in it: its path}) of an outermost module. It is the same at each call until the
    children of some module change."""
    global profiled
    if profiled is not layers:                      # a first log has opened since
        profiled = layers
        outermost.clear()
        known.clear()
    key = name, id(module)
    found = known.get(key)
    if found is None or found[0]() is not module or found[1] != shape:
        path = numbered(f"{name}.{type(module).__name__}" if name else type(module).__name__, module)
        paths = {id(m): f"{path}.{below}" if below else path for below, m in module.named_modules()}
        if len(known) >= MOST_KNOWN: known.clear()
        found = known[key] = ref(module), shape, path, paths
    return found[2:]


cdef str numbered(str name, module):
    """The name of an outermost module: its class, with #2 for the second module of this class, and so on. The number of
    one that was freed is used again, so that modules which are made for each call do not add rows."""
    cdef list found = outermost.setdefault(name, [])
    cdef Py_ssize_t k, at = len(found)
    for k in reversed(range(len(found))):
        other = found[k]()
        if other is module: return f"{name}#{k + 1}" if k else name
        if other is None: at = k
    found[at:at + 1] = [ref(module)]
    return f"{name}#{at + 1}" if at else name


def running_layer():
    """The path of the module that this thread runs while a memory profile is open; "" if there is none."""
    cdef tuple layer = set_layer(None)
    set_layer(layer)
    return "" if layer is None else layer[0]


def kind_of(x):
    """What an attribute with this value is: "variable", "frozen" (it was one), "result" of a recorded operation, or
    "plain"; None if it is not a tensor."""
    if type(x) is not Tensor and type(x) is not WaitingTensor: return None
    node = node_of(<Tensor>x)
    if node is None: return "plain"
    if node.op is not None: return "result"
    return "variable" if is_variable(<Tensor>x) else "frozen"
