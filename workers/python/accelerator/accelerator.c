/* The hot leaves of the WSGI and ASGI adapters, compiled: `parkade._accelerator`.
 *
 * Each function does what the Python function of the same purpose does for ordinary input, and returns None for
 * anything else: then Python does it, and raises what is to be raised. So every rule has one implementation, except
 * for the ordinary case. `parkade/_compiled.py` says which functions Python expects; `tests/test_compiled.py` holds
 * both implementations to the same results.
 *
 * Only the limited API of Python 3.10 is used: one file serves every CPython. Bytes are never trusted: every read is
 * checked against the end of the buffer.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Counted up whenever a function's arguments or results change: Python ignores an extension of another number. */
#define BOUNDARY 1

#define NAME_MAX_CACHED 47
#define SLOTS 256 /* about 32 KiB; a name that clients choose evicts one other */

/* A field's name, as the two adapters want it. `key` is None for a field that WSGI leaves out. */
typedef struct {
    size_t size;
    char name[NAME_MAX_CACHED + 1];
    PyObject *key;   /* str: HTTP_ACCEPT */
    PyObject *bytes; /* b"accept" */
} Slot;

typedef struct {
    Slot slots[SLOTS];
    PyObject *status_key;
    PyObject *headers_key;
} State;

/* Reading MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) */

typedef struct {
    const unsigned char *at;
    const unsigned char *end;
} Reader;

static int left(const Reader *reader, size_t count) {
    return (size_t)(reader->end - reader->at) >= count;
}

/* A big-endian number of 1, 2 or 4 bytes. */
static int read_number(Reader *reader, int width, size_t *number) {
    if (!left(reader, (size_t)width))
        return 0;
    size_t found = 0;
    for (int i = 0; i < width; i++)
        found = found << 8 | *reader->at++;
    *number = found;
    return 1;
}

static int read_array(Reader *reader, size_t *count) {
    if (!left(reader, 1))
        return 0;
    unsigned char mark = *reader->at++;
    if (mark >= 0x90 && mark <= 0x9f) {
        *count = mark & 0x0f;
        return 1;
    }
    if (mark == 0xdc)
        return read_number(reader, 2, count);
    if (mark == 0xdd)
        return read_number(reader, 4, count);
    return 0;
}

static int read_body(Reader *reader, size_t size, const char **bytes) {
    if (!left(reader, size))
        return 0;
    *bytes = (const char *)reader->at;
    reader->at += size;
    return 1;
}

static int read_text(Reader *reader, const char **text, size_t *size) {
    if (!left(reader, 1))
        return 0;
    unsigned char mark = *reader->at++;
    if (mark >= 0xa0 && mark <= 0xbf)
        *size = mark & 0x1f;
    else if (mark < 0xd9 || mark > 0xdb || !read_number(reader, 1 << (mark - 0xd9), size))
        return 0;
    return read_body(reader, *size, text);
}

static int read_bytes(Reader *reader, const char **bytes, size_t *size) {
    if (!left(reader, 1))
        return 0;
    unsigned char mark = *reader->at++;
    if (mark < 0xc4 || mark > 0xc6 || !read_number(reader, 1 << (mark - 0xc4), size))
        return 0;
    return read_body(reader, *size, bytes);
}

static int is_ascii(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] > 0x7f)
            return 0;
    return 1;
}

/* Names of fields */

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
        PyObject *key = slot->key, *bytes = slot->bytes;
        slot->key = slot->bytes = NULL;
        slot->size = size;
        memcpy(slot->name, name, size);
        Py_XDECREF(key);
        Py_XDECREF(bytes);
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

/* Headers of requests */

/* Begins to read headers, encoded, of which it returns a copy: the limited API has no buffers before 3.11. */
static PyObject *begin_headers(PyObject *encoded, Reader *reader, size_t *count) {
    PyObject *data = PyBytes_FromObject(encoded);
    if (data == NULL)
        return NULL;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data, &bytes, &size) < 0) {
        Py_DECREF(data);
        return NULL;
    }
    reader->at = (const unsigned char *)bytes;
    reader->end = reader->at + size;
    *count = 1; /* odd: refused by the callers */
    if (!read_array(reader, count))
        *count = 1;
    return data;
}

PyDoc_STRVAR(wsgi_fields_doc, "The headers of a request, encoded, as `environ` has them; None if they are unusual.");

static PyObject *wsgi_fields(PyObject *module, PyObject *encoded) {
    State *state = PyModule_GetState(module);
    Reader reader;
    size_t count;
    PyObject *data = begin_headers(encoded, &reader, &count);
    if (data == NULL)
        return NULL;
    PyObject *fields = PyDict_New();
    int is_usual = count % 2 == 0;
    for (size_t i = 0; fields != NULL && is_usual && i < count; i += 2) {
        const char *name, *value;
        size_t name_size, value_size;
        is_usual = read_text(&reader, &name, &name_size) && is_ascii(name, name_size) &&
                   read_bytes(&reader, &value, &value_size);
        if (!is_usual)
            break;
        Slot *slot = slot_of(state, name, name_size);
        PyObject *key = remembered(slot ? &slot->key : NULL, make_key, name, name_size);
        if (key == NULL) {
            Py_CLEAR(fields);
        } else if (key != Py_None) {
            PyObject *text = PyUnicode_DecodeLatin1(value, (Py_ssize_t)value_size, NULL);
            int is_there = text == NULL ? -1 : PyDict_Contains(fields, key);
            if (is_there == 1) /* two of one name are joined, by rules */
                is_usual = 0;
            else if (is_there < 0 || PyDict_SetItem(fields, key, text) < 0)
                Py_CLEAR(fields);
            Py_XDECREF(text);
        }
        Py_XDECREF(key);
    }
    is_usual = is_usual && reader.at == reader.end;
    Py_DECREF(data);
    if (fields != NULL && !is_usual) {
        Py_DECREF(fields);
        return Py_NewRef(Py_None);
    }
    return fields;
}

PyDoc_STRVAR(asgi_fields_doc, "The headers of a request, encoded, as a scope has them; None if they are unusual.");

static PyObject *asgi_fields(PyObject *module, PyObject *encoded) {
    State *state = PyModule_GetState(module);
    Reader reader;
    size_t count;
    PyObject *data = begin_headers(encoded, &reader, &count);
    if (data == NULL)
        return NULL;
    PyObject *fields = PyList_New(0);
    int is_usual = count % 2 == 0;
    for (size_t i = 0; fields != NULL && is_usual && i < count; i += 2) {
        const char *name, *value;
        size_t name_size, value_size;
        is_usual = read_text(&reader, &name, &name_size) && is_ascii(name, name_size) &&
                   read_bytes(&reader, &value, &value_size);
        if (!is_usual)
            break;
        Slot *slot = slot_of(state, name, name_size);
        PyObject *first = remembered(slot ? &slot->bytes : NULL, make_bytes, name, name_size);
        PyObject *second = first == NULL ? NULL : PyBytes_FromStringAndSize(value, (Py_ssize_t)value_size);
        PyObject *pair = second == NULL ? NULL : PyTuple_Pack(2, first, second);
        if (pair == NULL || PyList_Append(fields, pair) < 0)
            Py_CLEAR(fields);
        Py_XDECREF(first);
        Py_XDECREF(second);
        Py_XDECREF(pair);
    }
    is_usual = is_usual && reader.at == reader.end;
    Py_DECREF(data);
    if (fields != NULL && !is_usual) {
        Py_DECREF(fields);
        return Py_NewRef(Py_None);
    }
    return fields;
}

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

PyDoc_STRVAR(asgi_head_doc,
             "`http.response.start` as `(status, [name, value, name…])`; None if it is unusual.");

static PyObject *asgi_head(PyObject *module, PyObject *message) {
    State *state = PyModule_GetState(module);
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

/* The module */

static PyMethodDef methods[] = {
    {"wsgi_fields", wsgi_fields, METH_O, wsgi_fields_doc},
    {"asgi_fields", asgi_fields, METH_O, asgi_fields_doc},
    {"wsgi_head", wsgi_head, METH_VARARGS, wsgi_head_doc},
    {"asgi_head", asgi_head, METH_O, asgi_head_doc},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (int i = 0; i < SLOTS; i++)
        state->slots[i].size = SIZE_MAX; /* no name */
    state->status_key = PyUnicode_InternFromString("status");
    state->headers_key = PyUnicode_InternFromString("headers");
    if (state->status_key == NULL || state->headers_key == NULL)
        return -1;
    return PyModule_AddIntConstant(module, "BOUNDARY", BOUNDARY);
}

static int clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (int i = 0; i < SLOTS; i++) {
        Py_CLEAR(state->slots[i].key);
        Py_CLEAR(state->slots[i].bytes);
    }
    Py_CLEAR(state->status_key);
    Py_CLEAR(state->headers_key);
    return 0;
}

static void release(void *module) {
    clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "parkade._accelerator",
    .m_doc = "The hot leaves of the WSGI and ASGI adapters, compiled.",
    .m_size = sizeof(State),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__accelerator(void) {
    return PyModuleDef_Init(&definition);
}
