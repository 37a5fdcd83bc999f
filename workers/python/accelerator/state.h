/* What the module keeps: words that are made once, and names that many requests have in common. */

#ifndef STATE_H
#define STATE_H

#include "api.h"

#define NAME_MAX_CACHED 47
#define SLOTS 256 /* about 32 KiB; a name that clients choose evicts one other */

/* A field's name, as the two adapters want it. `key` is None for a field that WSGI leaves out. */
typedef struct {
    size_t size;
    char name[NAME_MAX_CACHED + 1];
    PyObject *key;   /* str: HTTP_ACCEPT */
    PyObject *bytes; /* b"accept" */
    PyObject *text;  /* the name itself, which may be a method, or another word of a head */
} Slot;

/* The keys of dictionaries, and other words: made once. */
#define EACH_WORD(word) \
    word(status_key, "status") word(headers_key, "headers") word(type_key, "type") \
    word(asgi_key, "asgi") word(http_version, "http_version") word(method, "method") word(scheme, "scheme") \
    word(path, "path") word(raw_path, "raw_path") word(query_string, "query_string") \
    word(client, "client") word(server, "server") word(extensions, "extensions") \
    word(request_id, "parkade.request_id") word(pathsend, "http.response.pathsend") \
    word(early_hint, "http.response.early_hint") word(trailers, "http.response.trailers") \
    word(request_method, "REQUEST_METHOD") word(path_info, "PATH_INFO") word(query_string_name, "QUERY_STRING") \
    word(request_uri, "REQUEST_URI") word(remote_addr, "REMOTE_ADDR") word(remote_port, "REMOTE_PORT") \
    word(server_name, "SERVER_NAME") word(server_port, "SERVER_PORT") word(server_protocol, "SERVER_PROTOCOL") \
    word(url_scheme, "wsgi.url_scheme") word(body, "body") word(more_body, "more_body") \
    word(trailers_key, "trailers") word(end, "end") word(waiters, "waiters") word(stream, "stream") \
    word(respond, "respond") word(complete, "complete") word(send_name, "_send")

#define MEMBER(name, text) PyObject *name;

typedef struct {
    Slot slots[SLOTS];
    EACH_WORD(MEMBER)
    PyObject *done; /* the only `Done` */
} State;


static int is_name(const char *name, size_t size, const char *other) {
    return size == strlen(other) && memcmp(name, other, size) == 0;
}

/* The key of a field in `environ`; None for one that is left out (`_LEFT_OUT` in environ.py says why). */
static PyObject *make_key(const char *name, size_t size) {
    if (is_name(name, size, "transfer-encoding") || is_name(name, size, "proxy") || memchr(name, '_', size) != NULL)
        return Py_NewRef(Py_None);
    int is_plain = is_name(name, size, "content-type") || is_name(name, size, "content-length");
    size_t prefix = is_plain ? 0 : 5;
    char *key = PyMem_Malloc(prefix + size + 1);
    if (key == NULL)
        return PyErr_NoMemory();
    memcpy(key, "HTTP_", prefix);
    for (size_t i = 0; i < size; i++) {
        char letter = name[i];
        key[prefix + i] = letter == '-' ? '_' : letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
    }
    PyObject *made = PyUnicode_FromStringAndSize(key, (Py_ssize_t)(prefix + size));
    PyMem_Free(key);
    return made;
}

static PyObject *make_bytes(const char *name, size_t size) {
    return PyBytes_FromStringAndSize(name, (Py_ssize_t)size);
}

/* The slot of a name, emptied if it was another's; NULL for a name that is too long to be remembered. */
static Slot *slot_of(State *state, const char *name, size_t size) {
    if (size > NAME_MAX_CACHED)
        return NULL;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    Slot *slot = &state->slots[(hash ^ hash >> 16) % SLOTS];
    if (slot->size != size || memcmp(slot->name, name, size) != 0) {
        PyObject *key = slot->key, *bytes = slot->bytes, *text = slot->text;
        slot->key = slot->bytes = slot->text = NULL;
        slot->size = size;
        memcpy(slot->name, name, size);
        Py_XDECREF(key);
        Py_XDECREF(bytes);
        Py_XDECREF(text);
    }
    return slot;
}

/* A new reference to what `make` makes of a name. */
static PyObject *remembered(PyObject **place, PyObject *(*make)(const char *, size_t), const char *name, size_t size) {
    if (place == NULL)
        return make(name, size);
    if (*place == NULL && (*place = make(name, size)) == NULL)
        return NULL;
    return Py_NewRef(*place);
}

/* Text that many requests share: methods, versions, the address of the server. */
static PyObject *make_text(const char *text, size_t size) {
    return PyUnicode_DecodeASCII(text, (Py_ssize_t)size, NULL);
}

static PyObject *shared_text(State *state, const char *text, size_t size) {
    Slot *slot = slot_of(state, text, size);
    return remembered(slot ? &slot->text : NULL, make_text, text, size);
}

/* Decimal digits, as text that many requests share if `state` is given. */
static PyObject *digits_of(State *state, size_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    size_t size = sizeof digits - at;
    return state == NULL ? make_text(digits + at, size) : shared_text(state, digits + at, size);
}

#endif
