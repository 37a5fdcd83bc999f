/* The scope of a request of ASGI. */

#ifndef SCOPE_H
#define SCOPE_H

#include "request_head.h"

/* The headers as a scope has them. `*has_te` says whether the client names codings that it takes, such as trailers. */
static PyObject *pairs_of(State *state, const Head *head, int *has_te) {
    Reader headers = head->headers;
    *has_te = 0;
    PyObject *pairs = PyList_New((Py_ssize_t)(head->headers_count / 2));
    for (size_t i = 0; pairs != NULL && i < head->headers_count; i += 2) {
        Span name, value;
        next_field(&headers, &name, &value);
        *has_te |= is_span(&name, "te");
        Slot *slot = slot_of(state, name.text, name.size);
        PyObject *first = remembered(slot ? &slot->bytes : NULL, make_bytes, name.text, name.size);
        PyObject *second = first == NULL ? NULL : make_bytes(value.text, value.size);
        PyObject *pair = second == NULL ? NULL : PyTuple_Pack(2, first, second);
        Py_XDECREF(first);
        Py_XDECREF(second);
        if (pair == NULL || PyList_SetItem(pairs, (Py_ssize_t)(i / 2), pair) < 0)
            Py_CLEAR(pairs);
    }
    return pairs;
}

/* The address of an end, or None if there is none. Takes the reference to the text. */
static PyObject *address_of(const Span *name, PyObject *text, size_t port, int has_port) {
    if (name->size == 0) {
        Py_XDECREF(text);
        return Py_NewRef(Py_None);
    }
    PyObject *number = has_port ? PyLong_FromSize_t(port) : Py_NewRef(Py_None);
    PyObject *address = text == NULL || number == NULL ? NULL : PyTuple_Pack(2, text, number);
    Py_XDECREF(text);
    Py_XDECREF(number);
    return address;
}

/* As `_extensions` in scope.py has them for a client that names no codings. */
static PyObject *extensions_of(State *state, const Span *version, int has_trailers) {
    PyObject *extensions = PyDict_New();
    if (extensions == NULL)
        return NULL;
    int has_hints = has_trailers && (is_span(version, "1.1") || is_span(version, "2"));
    if (put(extensions, state->pathsend, PyDict_New()) &&
        (!has_hints || put(extensions, state->early_hint, PyDict_New())) &&
        (!has_hints || !is_span(version, "2") || put(extensions, state->trailers, PyDict_New())))
        return extensions;
    Py_DECREF(extensions);
    return NULL;
}

static int fill_scope(State *state, PyObject *scope, const Head *head, PyObject *pairs, int has_trailers) {
    PyObject *asgi = PyDict_GetItemWithError(scope, state->asgi_key); /* borrowed: of the constants */
    return asgi != NULL && put(scope, state->asgi_key, PyDict_Copy(asgi)) &&
           put(scope, state->http_version, shared(state, &head->version)) &&
           put(scope, state->method, shared(state, &head->method)) &&
           put(scope, state->scheme, shared(state, &head->scheme)) &&
           put(scope, state->path, decoded_path(&head->path, 0)) &&
           put(scope, state->raw_path, make_bytes(head->path.text, head->path.size)) &&
           put(scope, state->query_string, make_bytes(head->query.text, head->query.size)) &&
           put(scope, state->headers_key, Py_NewRef(pairs)) &&
           put(scope, state->client, address_of(&head->client, text_of(&head->client), head->client_port, 1)) &&
           put(scope, state->server,
               address_of(&head->server, shared(state, &head->server), head->server_port, head->server_port != 0)) &&
           put(scope, state->extensions, extensions_of(state, &head->version, has_trailers)) &&
           put(scope, state->request_id, text_of(&head->id));
}

PyDoc_STRVAR(asgi_scope_doc,
             "What a scope says of the head of a request, encoded, in a copy of `constants`; None if that is unusual.");

static PyObject *asgi_scope(PyObject *module, PyObject *arguments) {
    State *state = PyModule_GetState(module);
    PyObject *encoded, *constants;
    int has_trailers;
    if (!PyArg_ParseTuple(arguments, "OOp", &encoded, &constants, &has_trailers))
        return NULL;
    Head head;
    PyObject *scope = NULL;
    int result = read_head(encoded, &head);
    if (result == 1) {
        int has_te;
        PyObject *pairs = pairs_of(state, &head, &has_te);
        scope = pairs == NULL || has_te ? NULL : PyDict_Copy(constants);
        if (pairs != NULL && has_te)
            result = 0;
        else if (scope == NULL || !fill_scope(state, scope, &head, pairs, has_trailers))
            result = -1;
        Py_XDECREF(pairs);
    }
    Py_XDECREF(head.data);
    if (result == 1)
        return scope;
    Py_XDECREF(scope);
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

#endif
