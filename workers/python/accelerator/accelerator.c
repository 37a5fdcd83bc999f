/* The ordinary cases of the WSGI and ASGI adapters, compiled: `parkade._accelerator`.
 *
 * Each function does what the Python function of the same purpose does for ordinary input, and returns None for
 * anything else: then Python does it, and raises what is to be raised. So every rule has one implementation, except
 * for the ordinary case. `parkade/_compiled.py` says which functions Python expects; `tests/test_compiled.py` holds
 * both implementations to the same results.
 */

#include "environ.h"
#include "response.h"
#include "scope.h"
#include "sender.h"

/* Counted up whenever a function's arguments or results change: Python ignores an extension of another number. */
#define BOUNDARY 2

static PyMethodDef methods[] = {
    {"wsgi_environ", wsgi_environ, METH_VARARGS, wsgi_environ_doc},
    {"asgi_scope", asgi_scope, METH_VARARGS, asgi_scope_doc},
    {"wsgi_head", wsgi_head, METH_VARARGS, wsgi_head_doc},
    {"asgi_head", asgi_head, METH_O, asgi_head_doc},
    {"response", response, METH_VARARGS, response_doc},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (int i = 0; i < SLOTS; i++)
        state->slots[i].size = SIZE_MAX; /* no name */
#define INTERN(name, text) \
    if ((state->name = PyUnicode_InternFromString(text)) == NULL) \
        return -1;
    EACH_WORD(INTERN)
    if (the_state != NULL) {
        PyErr_SetString(PyExc_ImportError, "it is for one interpreter of a process");
        return -1;
    }
    the_state = state;
    PyObject *done = PyType_FromSpec(&done_spec);
    PyObject *sender = PyType_FromSpec(&sender_spec);
    state->done = done == NULL ? NULL : PyObject_CallObject(done, NULL);
    Py_XDECREF(done);
    int is_ready = state->done != NULL && sender != NULL && PyModule_AddObjectRef(module, "AsgiSender", sender) == 0;
    Py_XDECREF(sender);
    if (!is_ready)
        return -1;
    return PyModule_AddIntConstant(module, "BOUNDARY", BOUNDARY);
}

static int clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (int i = 0; i < SLOTS; i++) {
        Py_CLEAR(state->slots[i].key);
        Py_CLEAR(state->slots[i].bytes);
        Py_CLEAR(state->slots[i].text);
    }
#define FORGET(name, text) Py_CLEAR(state->name);
    EACH_WORD(FORGET)
    Py_CLEAR(state->done);
    return 0;
}

static void release(void *module) {
    if (the_state == PyModule_GetState(module))
        the_state = NULL;
    clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "parkade._accelerator",
    .m_doc = "The ordinary cases of the WSGI and ASGI adapters, compiled.",
    .m_size = sizeof(State),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__accelerator(void) {
    return PyModuleDef_Init(&definition);
}
