/* The Python frames of this thread, the innermost first, each with the address of its current instruction.

   The public functions create an object for each frame. That is too slow for a profile, and the objects trigger the
   garbage collector. For Python 3.11 the frames are therefore read from the interpreter's own structs. So are the
   local variables of a frame object: before Python 3.13 its f_locals is a copy that keeps them alive. */
#ifndef CYGRAD_FRAMES_H
#define CYGRAD_FRAMES_H

#include <Python.h>

typedef struct {
    void *frame;    /* valid until the frame returns */
    void *at;
} cg_frame;

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION) && !defined(CG_PUBLIC_FRAMES)
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#define CG_BUILD_CORE
#endif
#include "internal/pycore_frame.h"
#ifdef CG_BUILD_CORE
#undef Py_BUILD_CORE
#undef CG_BUILD_CORE
#endif

static inline int cg_stack(cg_frame *stack, int capacity) {
    int n = 0;
    _PyInterpreterFrame *f = PyThreadState_Get()->cframe->current_frame;
    while (f != NULL && _PyFrame_IsIncomplete(f)) f = f->previous; /* a frame that has called another is complete */
    for (; f != NULL && n < capacity; f = f->previous) {
        stack[n].frame = f;
        stack[n++].at = f->prev_instr;
    }
    return n;
}

static inline void *cg_code(const cg_frame *f) {
    return ((_PyInterpreterFrame *)f->frame)->f_code;
}

static inline int cg_instruction(const cg_frame *f) {
    return _PyInterpreterFrame_LASTI((_PyInterpreterFrame *)f->frame) * (int)sizeof(_Py_CODEUNIT);
}

/* The value of the i-th local variable of a frame object, a new reference; NULL, without an error, if it has none. */
static inline PyObject *cg_local(PyObject *frame, int i, PyObject *name) {
    (void)name;
    PyObject *value = ((PyFrameObject *)frame)->f_frame->localsplus[i];
    if (value != NULL && PyCell_Check(value)) value = PyCell_GET(value);
    Py_XINCREF(value);
    return value;
}

#else

static inline int cg_stack(cg_frame *stack, int capacity) {
    int n = 0;
    PyFrameObject *back, *f = PyEval_GetFrame();
    Py_XINCREF(f);
    while (f != NULL && n < capacity) {
        PyCodeObject *code = PyFrame_GetCode(f);
        stack[n].frame = f;
        stack[n++].at = (char *)code + PyFrame_GetLasti(f);
        Py_DECREF((PyObject *)code); /* the frame holds the code object, and its caller holds the frame */
        back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    Py_XDECREF(f);
    return n;
}

static inline void *cg_code(const cg_frame *f) {
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)f->frame);
    Py_DECREF((PyObject *)code);
    return code;
}

static inline int cg_instruction(const cg_frame *f) {
    return PyFrame_GetLasti((PyFrameObject *)f->frame);
}

static inline PyObject *cg_local(PyObject *frame, int i, PyObject *name) {
    (void)i;
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *value = PyFrame_GetVar((PyFrameObject *)frame, name);
    if (value == NULL) PyErr_Clear();
    return value;
#else
    (void)frame, (void)name;
    return NULL;
#endif
}

#endif
#endif
