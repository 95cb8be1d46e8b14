/* A shared object with many modules of the package. The functions below import a module from it, as Python imports one
   from a file of its own. setup.py writes a header with MODULE(init, name) for each module and defines its path as
   BUNDLE_TABLE. It also has LOADED(name, doc) for each module that `import cygrad` loads, in order, with
   the docstring of a package without code and "" for all others. BUNDLE_INIT is the name of the init function that
   Python calls. Each module's own init function returns its definition (multi-phase initialization, PEP 489). create_module() makes a module from the definition and a spec,
   and exec_module() executes it. */

#include <Python.h>
#include <string.h>
#if defined(__linux__)
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#define LOADED(name, doc)
#define MODULE(init, name) PyObject* init(void);
#include BUNDLE_TABLE
#undef MODULE

static const struct { const char* name; PyObject* (*init)(void); } modules[] = {
#define MODULE(init, name) {name, init},
#include BUNDLE_TABLE
#undef MODULE
};

#undef LOADED
#define LOADED(name, doc) {name, doc},
#define MODULE(init, name)
static const struct { const char* name; const char* doc; } loaded[] = {
#include BUNDLE_TABLE
    {NULL, NULL}                                    /* (the list of a bundle may be empty) */
};

enum { COUNT = sizeof modules / sizeof *modules, LOADED_COUNT = sizeof loaded / sizeof *loaded - 1 };

static PyObject* strings(const char* const* first, size_t stride, Py_ssize_t count) {
    PyObject* result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result && i < count; ++i) {
        PyObject* string = PyUnicode_InternFromString(*(const char* const*)((const char*)first + i * stride));
        if (!string) Py_CLEAR(result);
        else PyTuple_SET_ITEM(result, i, string);
    }
    return result;
}

static PyObject* names(PyObject* self, PyObject* none) {
    (void)self; (void)none;
    return strings(&modules->name, sizeof *modules, COUNT);
}

static PyObject* order(PyObject* self, PyObject* none) {
    (void)self; (void)none;
    return strings(&loaded->name, sizeof *loaded, LOADED_COUNT);
}

static PyObject* docs(PyObject* self, PyObject* none) {
    (void)self; (void)none;
    return strings(&loaded->doc, sizeof *loaded, LOADED_COUNT);
}

static PyObject* create_module(PyObject* self, PyObject* spec) {
    (void)self;
    PyObject* result = NULL;
    PyObject* name = PyObject_GetAttrString(spec, "name");
    const char* wanted = name ? PyUnicode_AsUTF8(name) : NULL;
    if (wanted) {
        Py_ssize_t i = 0;
        while (i < COUNT && strcmp(modules[i].name, wanted)) ++i;
        if (i == COUNT) PyErr_Format(PyExc_ImportError, "this bundle has no module named %R", name);
        else {
            PyObject* definition = modules[i].init();
            if (definition) result = PyModule_FromDefAndSpec((PyModuleDef*)definition, spec);
        }
    }
    Py_XDECREF(name);
    return result;
}

static PyObject* exec_module(PyObject* self, PyObject* module) {
    (void)self;
    PyModuleDef* definition = PyModule_GetDef(module);
    if (!definition) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ImportError, "%R is not a module of a bundle", module);
        return NULL;
    }
    if (PyModule_ExecDef(module, definition)) return NULL;
    Py_RETURN_NONE;
}

#if defined(__linux__) && !defined(BUNDLE_SYMBOLS)   /* (breakpoints and probes are in the pages) */
static int unmap(struct dl_phdr_info* file, size_t size, void* inside) {
    const ElfW(Addr) page = (ElfW(Addr))sysconf(_SC_PAGESIZE);
    int found = 0;
    (void)size;
    for (int i = 0; i < file->dlpi_phnum; ++i) {
        const ElfW(Phdr)* part = &file->dlpi_phdr[i];
        found |= part->p_type == PT_LOAD && (ElfW(Addr))inside - (file->dlpi_addr + part->p_vaddr) < part->p_memsz;
    }
    for (int i = 0; found && i < file->dlpi_phnum; ++i) {
        const ElfW(Phdr)* part = &file->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || part->p_flags & PF_W) continue;
        ElfW(Addr) start = (file->dlpi_addr + part->p_vaddr) & -page;
        madvise((void*)start, file->dlpi_addr + part->p_vaddr + part->p_memsz - start, MADV_DONTNEED);
    }
    return found;
}
#endif

static PyObject* forget(PyObject* self, PyObject* none) {
    (void)self; (void)none;
#if defined(__linux__) && !defined(BUNDLE_SYMBOLS)
    dl_iterate_phdr(unmap, (void*)modules);
#endif
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"names", names, METH_NOARGS, PyDoc_STR("The full names of the modules that this file holds.")},
    {"order", order, METH_NOARGS, PyDoc_STR("The full names of the modules that `import cygrad` loads, in order.")},
    {"docs", docs, METH_NOARGS, PyDoc_STR("For each of order(), the docstring of a package without code, or \"\".")},
    {"create_module", create_module, METH_O, PyDoc_STR("A loader's create_module(spec).")},
    {"exec_module", exec_module, METH_O, PyDoc_STR("A loader's exec_module(module).")},
    {"forget", forget, METH_NOARGS,
     PyDoc_STR("Remove code and constants of the file from resident memory. Linux maps them again at their next use.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "bundle", .m_methods = methods};

PyMODINIT_FUNC BUNDLE_INIT(void) { return PyModuleDef_Init(&definition); }
