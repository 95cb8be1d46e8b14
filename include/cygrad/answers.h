/* Compiled into cygrad/_cyutility alone, before what Cython wrote: there the functions stand that read the keywords of a
 * call, for all modules. Where they refuse one that a function has not, core/answers.py may know what it is called
 * here. A call that succeeds never comes this way. */

#ifndef CYGRAD_ANSWERS_H
#define CYGRAD_ANSWERS_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdarg.h>
#include <string.h>

/* The sentence for `keyword`, or NULL without an error. */
static PyObject *cg_answer(const char *function, PyObject *keyword)
{
    PyObject *module = PyImport_ImportModule("cygrad.core.answers");
    PyObject *answer = module ? PyObject_CallMethod(module, "of_keyword", "sO", function, keyword) : NULL;
    Py_XDECREF(module);
    if (answer == NULL) PyErr_Clear();
    if (answer != NULL && !PyUnicode_Check(answer)) Py_CLEAR(answer);
    return answer;
}

static PyObject *cg_format(PyObject *type, const char *format, ...)
{
    PyObject *answer = NULL;
    va_list given;
    if (type == PyExc_TypeError && strcmp(format, "%s() got an unexpected keyword argument '%U'") == 0) {
        const char *function;
        va_start(given, format);
        function = va_arg(given, const char *);
        answer = cg_answer(function, va_arg(given, PyObject *));
        va_end(given);
    }
    if (answer != NULL) {
        PyErr_SetObject(type, answer);
        Py_DECREF(answer);
        return NULL;
    }
    va_start(given, format);
    PyErr_FormatV(type, format, given);
    va_end(given);
    return NULL;
}

#define PyErr_Format cg_format

#endif
