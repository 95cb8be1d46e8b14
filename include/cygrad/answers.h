/* Improves the errors for an unexpected keyword argument, and for too many arguments. This file is included only in
   cygrad/_cyutility, before the code that Cython generates there, which parses the arguments of all modules. It replaces
   PyErr_Format in that code (docs/decisions/0026). If a function does not have a keyword, core/answers.py may have a
   message that names cygrad's keyword. Successful calls do not run this code. */

#ifndef CYGRAD_ANSWERS_H
#define CYGRAD_ANSWERS_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdarg.h>
#include <string.h>

/* What `how`(function, value) of core/answers.py says, or NULL without an exception. It takes over `value`. */
static PyObject *cg_answer(const char *how, const char *function, PyObject *value)
{
    PyObject *module = value ? PyImport_ImportModule("cygrad.core.answers") : NULL;
    PyObject *answer = module ? PyObject_CallMethod(module, how, "sO", function, value) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(value);
    if (answer == NULL) PyErr_Clear();
    if (answer != NULL && !PyUnicode_Check(answer)) Py_CLEAR(answer);
    return answer;
}

/* The message for a wrong number of arguments begins with this. */
#define CG_COUNT "%.200s() takes %.8s %"

static PyObject *cg_format(PyObject *type, const char *format, ...)
{
    PyObject *answer = NULL;
    va_list arguments;
    if (type == PyExc_TypeError && strcmp(format, "%s() got an unexpected keyword argument '%U'") == 0) {
        const char *function;
        va_start(arguments, format);
        function = va_arg(arguments, const char *);
        answer = cg_answer("of_keyword", function, Py_NewRef(va_arg(arguments, PyObject *)));
        va_end(arguments);
    }
    else if (type == PyExc_TypeError && strncmp(format, CG_COUNT, strlen(CG_COUNT)) == 0) {
        const char *function;
        Py_ssize_t wanted, given;
        va_start(arguments, format);
        function = va_arg(arguments, const char *);
        (void)va_arg(arguments, const char *);      /* "exactly", "at least" or "at most" */
        wanted = va_arg(arguments, Py_ssize_t);
        (void)va_arg(arguments, const char *);      /* "s" of arguments */
        given = va_arg(arguments, Py_ssize_t);
        va_end(arguments);
        if (given > wanted) answer = cg_answer("of_count", function, PyLong_FromSsize_t(given));
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
