/* Improves the error for an unexpected keyword argument. This file is included only in cygrad/_cyutility, before the
   code that Cython generates there, which parses the keyword arguments of all modules. It replaces PyErr_Format in that
   code (docs/decisions/0025). If a function does not have a keyword, core/answers.py may have a message that names
   cygrad's keyword. Successful calls do not run this code. */

#ifndef CYGRAD_ANSWERS_H
#define CYGRAD_ANSWERS_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdarg.h>
#include <string.h>

/* The message for `keyword`, or NULL without an exception. */
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
    va_list arguments;
    if (type == PyExc_TypeError && strcmp(format, "%s() got an unexpected keyword argument '%U'") == 0) {
        const char *function;
        va_start(arguments, format);
        function = va_arg(arguments, const char *);
        answer = cg_answer(function, va_arg(arguments, PyObject *));
        va_end(arguments);
    }
    if (answer != NULL) {
        PyErr_SetObject(type, answer);
        Py_DECREF(answer);
        return NULL;
    }
    va_start(arguments, format);
    PyErr_FormatV(type, format, arguments);
    va_end(arguments);
    return NULL;
}

#define PyErr_Format cg_format

#endif
