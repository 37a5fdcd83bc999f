/* The head of a response, out of what an application gives, and a whole response as a payload. */

#ifndef RESPONSE_H
#define RESPONSE_H

#include "messagepack.h"
#include "state.h"

#define INLINE_MAX 65536 /* bytes of a body in one frame */

/* Heads of responses */

/* A pair in a list of headers; borrowed. Returns whether it is one. */
static int is_pair(PyObject *pair, PyObject **name, PyObject **value) {
    if (PyTuple_CheckExact(pair) && PyTuple_Size(pair) == 2) {
        *name = PyTuple_GetItem(pair, 0);
        *value = PyTuple_GetItem(pair, 1);
        return 1;
    }
    if (PyList_CheckExact(pair) && PyList_Size(pair) == 2) {
        *name = PyList_GetItem(pair, 0);
        *value = PyList_GetItem(pair, 1);
        return 1;
    }
    return 0;
}

/* The UTF-8 of a text of ASCII, or NULL, without an exception. */
static const char *ascii_of(PyObject *text, Py_ssize_t *size) {
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, size);
    if (utf8 == NULL) {
        PyErr_Clear();
        return NULL;
    }
    return PyUnicode_GetLength(text) == *size ? utf8 : NULL;
}

/* The number of a status line, or 0 if it is unusual. */
static long status_of(PyObject *line) {
    if (!PyUnicode_CheckExact(line))
        return 0;
    Py_ssize_t size;
    const char *text = ascii_of(line, &size);
    if (text == NULL || size < 3 || (size > 3 && text[3] != ' '))
        return 0;
    long status = 0;
    for (int i = 0; i < 3; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        status = status * 10 + (text[i] - '0');
    }
    return status < 200 || status > 599 ? 0 : status;
}

/* `(status, flat)`. Takes the reference to `flat`. */
static PyObject *head_of(long status, PyObject *flat) {
    PyObject *number = PyLong_FromLong(status);
    PyObject *head = number == NULL ? NULL : PyTuple_Pack(2, number, flat);
    Py_XDECREF(number);
    Py_DECREF(flat);
    return head;
}

PyDoc_STRVAR(wsgi_head_doc,
             "The arguments of `start_response` as `(status, [name, value, name…])`; None if they are unusual.");

static PyObject *wsgi_head(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *line, *headers;
    if (!PyArg_ParseTuple(arguments, "OO", &line, &headers))
        return NULL;
    long status = status_of(line);
    if (status == 0 || !PyList_CheckExact(headers))
        return Py_NewRef(Py_None);
    PyObject *flat = PyList_New(0);
    for (Py_ssize_t i = 0; flat != NULL && i < PyList_Size(headers); i++) {
        PyObject *name, *value;
        Py_ssize_t size;
        if (!is_pair(PyList_GetItem(headers, i), &name, &value) || !PyUnicode_CheckExact(name) ||
            !PyUnicode_CheckExact(value) || ascii_of(value, &size) == NULL) {
            Py_DECREF(flat);
            return Py_NewRef(Py_None);
        }
        if (PyList_Append(flat, name) < 0 || PyList_Append(flat, value) < 0)
            Py_CLEAR(flat);
    }
    return flat == NULL ? NULL : head_of(status, flat);
}

/* `http.response.start` as `(status, [name, value, name…])`; None if it is unusual. */
static PyObject *make_head(State *state, PyObject *message) {
    if (!PyDict_CheckExact(message))
        return Py_NewRef(Py_None);
    PyObject *number = PyDict_GetItemWithError(message, state->status_key);
    PyObject *headers = number == NULL ? NULL : PyDict_GetItemWithError(message, state->headers_key);
    if (headers == NULL) {
        if (PyErr_Occurred())
            return NULL;
        return Py_NewRef(Py_None);
    }
    if (!PyLong_CheckExact(number) || !PyList_CheckExact(headers))
        return Py_NewRef(Py_None);
    long status = PyLong_AsLong(number);
    if (status < 200 || status > 599) {
        PyErr_Clear(); /* it was too large */
        return Py_NewRef(Py_None);
    }
    PyObject *flat = PyList_New(0);
    for (Py_ssize_t i = 0; flat != NULL && i < PyList_Size(headers); i++) {
        PyObject *name, *value;
        if (!is_pair(PyList_GetItem(headers, i), &name, &value) || !PyBytes_CheckExact(name) ||
            !PyBytes_CheckExact(value)) {
            Py_DECREF(flat);
            return Py_NewRef(Py_None);
        }
        PyObject *text = PyUnicode_DecodeLatin1(PyBytes_AsString(name), PyBytes_Size(name), NULL);
        if (text == NULL || PyList_Append(flat, text) < 0 || PyList_Append(flat, value) < 0)
            Py_CLEAR(flat);
        Py_XDECREF(text);
    }
    return flat == NULL ? NULL : head_of(status, flat);
}

PyDoc_STRVAR(asgi_head_doc,
             "`http.response.start` as `(status, [name, value, name…])`; None if it is unusual.");

static PyObject *asgi_head(PyObject *module, PyObject *message) {
    return make_head(PyModule_GetState(module), message);
}

/* Whole responses */

/* The bytes of a text or of bytes. Returns whether it is one of the two; without an exception. */
static int bytes_in(PyObject *object, const char **bytes, Py_ssize_t *size) {
    if (PyBytes_CheckExact(object)) {
        *bytes = PyBytes_AsString(object);
        *size = PyBytes_Size(object);
        return 1;
    }
    if (!PyUnicode_CheckExact(object))
        return 0;
    *bytes = PyUnicode_AsUTF8AndSize(object, size);
    if (*bytes == NULL)
        PyErr_Clear();
    return *bytes != NULL;
}

/* The payload of RESPONSE, from `(status, [name, value, name…])` and a body. Returns 1, 0 if something is unusual, or
 * -1 with an exception.
 */
static int make_response(PyObject *head, PyObject *body, PyObject **payload) {
    if (!PyTuple_CheckExact(head) || PyTuple_Size(head) != 2 || !PyBytes_CheckExact(body) ||
        PyBytes_Size(body) > INLINE_MAX)
        return 0;
    PyObject *number = PyTuple_GetItem(head, 0), *flat = PyTuple_GetItem(head, 1);
    if (!PyLong_CheckExact(number) || !PyList_CheckExact(flat))
        return 0;
    long status = PyLong_AsLong(number);
    if (status < 200 || status > 599) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t count = PyList_Size(flat), size = PyBytes_Size(body);
    size_t room = 1 + (status <= 0xff ? 2 : 3) + sized(&ARRAY, (size_t)count);
    room += sized(&BYTES, (size_t)size) + (size_t)size;
    const char *bytes;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = PyList_GetItem(flat, i);
        if (!bytes_in(part, &bytes, &size))
            return 0;
        room += sized(PyBytes_CheckExact(part) ? &BYTES : &TEXT, (size_t)size) + (size_t)size;
    }
    if ((*payload = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room)) == NULL)
        return -1;
    unsigned char *at = (unsigned char *)PyBytes_AsString(*payload);
    *at++ = 0x93;
    *at++ = status <= 0xff ? 0xcc : 0xcd;
    write_number(&at, (size_t)status, status <= 0xff ? 1 : 2);
    write_mark(&at, &ARRAY, (size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = PyList_GetItem(flat, i);
        bytes_in(part, &bytes, &size);
        write_mark(&at, PyBytes_CheckExact(part) ? &BYTES : &TEXT, (size_t)size);
        write_body(&at, bytes, (size_t)size);
    }
    write_mark(&at, &BYTES, (size_t)PyBytes_Size(body));
    write_body(&at, PyBytes_AsString(body), (size_t)PyBytes_Size(body));
    return 1;
}

PyDoc_STRVAR(response_doc,
             "The payload of RESPONSE, from `(status, [name, value, name…])` and a body; None if one is unusual.");

static PyObject *response(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *head, *body, *payload;
    if (!PyArg_ParseTuple(arguments, "OO", &head, &body))
        return NULL;
    int result = make_response(head, body, &payload);
    return result == 1 ? payload : result == 0 ? Py_NewRef(Py_None) : NULL;
}

#endif
