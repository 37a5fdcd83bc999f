/* The `environ` of a request of WSGI. */

#ifndef ENVIRON_H
#define ENVIRON_H

#include "request_head.h"

/* Adds the fields as `environ` has them. Returns 1, 0 if they are unusual, or -1 with an exception. */
static int add_fields(State *state, PyObject *environ, const Head *head) {
    Reader headers = head->headers;
    for (size_t i = 0; i < head->headers_count; i += 2) {
        Span name, value;
        next_field(&headers, &name, &value);
        Slot *slot = slot_of(state, name.text, name.size);
        PyObject *key = remembered(slot ? &slot->key : NULL, make_key, name.text, name.size);
        if (key == NULL)
            return -1;
        int result = 1;
        if (key != Py_None) {
            PyObject *text = PyUnicode_DecodeLatin1(value.text, (Py_ssize_t)value.size, NULL);
            result = text == NULL ? -1 : PyDict_Contains(environ, key);
            if (result >= 0) /* two of one name are joined, by rules */
                result = result == 1 ? 0 : PyDict_SetItem(environ, key, text) < 0 ? -1 : 1;
            Py_XDECREF(text);
        }
        Py_DECREF(key);
        if (result != 1)
            return result;
    }
    return 1;
}

static PyObject *protocol_of(State *state, const Span *version) {
    char protocol[5 + VERSION_MAX] = "HTTP/";
    if (is_span(version, "2"))
        return shared_text(state, "HTTP/2.0", 8);
    memcpy(protocol + 5, version->text, version->size);
    return shared_text(state, protocol, 5 + version->size);
}

static PyObject *uri_of(const Head *head) {
    if (head->query.size == 0)
        return text_of(&head->path);
    size_t size = head->path.size + 1 + head->query.size;
    char *uri = PyMem_Malloc(size);
    if (uri == NULL)
        return PyErr_NoMemory();
    memcpy(uri, head->path.text, head->path.size);
    uri[head->path.size] = '?';
    memcpy(uri + head->path.size + 1, head->query.text, head->query.size);
    PyObject *text = make_text(uri, size);
    PyMem_Free(uri);
    return text;
}

static int fill_environ(State *state, PyObject *environ, const Head *head) {
    int done = put(environ, state->request_method, shared(state, &head->method)) &&
               put(environ, state->path_info, decoded_path(&head->path, 1)) &&
               put(environ, state->query_string_name, text_of(&head->query)) &&
               put(environ, state->request_uri, uri_of(head)) &&
               put(environ, state->remote_addr, text_of(&head->client)) &&
               (head->client_port == 0 || put(environ, state->remote_port, digits_of(NULL, head->client_port))) &&
               put(environ, state->server_name, shared(state, &head->server)) &&
               put(environ, state->server_port, digits_of(state, head->server_port)) &&
               put(environ, state->server_protocol, protocol_of(state, &head->version)) &&
               put(environ, state->url_scheme, shared(state, &head->scheme)) &&
               put(environ, state->request_id, text_of(&head->id));
    return done ? add_fields(state, environ, head) : -1;
}

PyDoc_STRVAR(wsgi_environ_doc,
             "What `environ` says of the head of a request, encoded, in a copy of `constants`; None if it is unusual.");

static PyObject *wsgi_environ(PyObject *module, PyObject *arguments) {
    State *state = PyModule_GetState(module);
    PyObject *encoded, *constants;
    if (!PyArg_ParseTuple(arguments, "OO", &encoded, &constants))
        return NULL;
    Head head;
    PyObject *environ = NULL;
    int result = read_head(encoded, &head);
    if (result == 1 && head.server_port == 0)
        result = 0; /* a Unix socket: the client says which server it asked for */
    if (result == 1) {
        environ = PyDict_Copy(constants);
        result = environ == NULL ? -1 : fill_environ(state, environ, &head);
    }
    Py_XDECREF(head.data);
    if (result == 1)
        return environ;
    Py_XDECREF(environ);
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

#endif
