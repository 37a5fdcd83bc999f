/* The head of a request, encoded: what `environ` and a scope are made of. */

#ifndef REQUEST_HEAD_H
#define REQUEST_HEAD_H

#include "messagepack.h"
#include "state.h"

#define HEAD_COUNT 11 /* what it has */
#define VERSION_MAX 3 /* bytes of a version of HTTP */


typedef struct {
    const char *text; /* ASCII */
    size_t size;
} Span;

typedef struct {
    PyObject *data; /* the bytes that all of it is in; owned */
    Span method, path, query;
    Reader headers;
    size_t headers_count;
    Span client, scheme, version, id;
    size_t client_port;
    Span server;
    size_t server_port;
} Head;

static int read_span(Reader *reader, Span *span) {
    return read_text(reader, &span->text, &span->size) && is_ascii(span->text, span->size);
}

static int read_port(Reader *reader, size_t *port) {
    if (!left(reader, 1))
        return 0;
    unsigned char mark = *reader->at++;
    if (mark <= 0x7f) {
        *port = mark;
        return 1;
    }
    return (mark == 0xcc || mark == 0xcd) && read_number(reader, mark == 0xcc ? 1 : 2, port);
}

/* Skips the headers, which are read when the rest of the head is known. */
static int skip_headers(Reader *reader, Head *head) {
    if (!read_array(reader, &head->headers_count) || head->headers_count % 2 != 0)
        return 0;
    head->headers = *reader;
    for (size_t i = 0; i < head->headers_count; i += 2) {
        Span name;
        const char *value;
        size_t size;
        if (!read_span(reader, &name) || !read_bytes(reader, &value, &size))
            return 0;
    }
    head->headers.end = reader->at;
    return 1;
}

static int is_span(const Span *span, const char *text) {
    return is_name(span->text, span->size, text);
}

/* Reads a head, encoded, of an HTTP request. Returns 1, 0 if it is unusual, or -1 with an exception. Whatever it
 * returns, `head->data` is to be released: a copy, because the limited API has no buffers before 3.11.
 */
static int read_head(PyObject *encoded, Head *head) {
    head->data = PyBytes_FromObject(encoded);
    char *bytes;
    Py_ssize_t size;
    if (head->data == NULL || PyBytes_AsStringAndSize(head->data, &bytes, &size) < 0)
        return -1;
    Reader reader = {(const unsigned char *)bytes, (const unsigned char *)bytes + size};
    size_t count;
    return read_array(&reader, &count) && count == HEAD_COUNT && read_span(&reader, &head->method) &&
           read_span(&reader, &head->path) && read_span(&reader, &head->query) && skip_headers(&reader, head) &&
           read_span(&reader, &head->client) && read_span(&reader, &head->scheme) &&
           (is_span(&head->scheme, "http") || is_span(&head->scheme, "https")) &&
           read_span(&reader, &head->version) && head->version.size <= VERSION_MAX && read_span(&reader, &head->id) &&
           read_port(&reader, &head->client_port) && read_span(&reader, &head->server) &&
           read_port(&reader, &head->server_port) && reader.at == reader.end;
}

/* The next field of a head that was read. */
static void next_field(Reader *headers, Span *name, Span *value) {
    read_text(headers, &name->text, &name->size);
    read_bytes(headers, &value->text, &value->size);
}

static int digit_of(char letter) {
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    letter |= 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Percent-decodes a path, as `percent_decode` does, into text: UTF-8 with U+FFFD for what is wrong, or ISO-8859-1. */
static PyObject *decoded_path(const Span *path, int is_native) {
    if (memchr(path->text, '%', path->size) == NULL)
        return make_text(path->text, path->size);
    char *decoded = PyMem_Malloc(path->size);
    if (decoded == NULL)
        return PyErr_NoMemory();
    size_t size = 0;
    for (size_t i = 0; i < path->size; i++) {
        int high = -1, low = -1;
        if (path->text[i] == '%' && path->size - i > 2) {
            high = digit_of(path->text[i + 1]);
            low = digit_of(path->text[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            decoded[size++] = (char)(high << 4 | low);
            i += 2;
        } else {
            decoded[size++] = path->text[i];
        }
    }
    PyObject *text = is_native ? PyUnicode_DecodeLatin1(decoded, (Py_ssize_t)size, NULL)
                               : PyUnicode_DecodeUTF8(decoded, (Py_ssize_t)size, "replace");
    PyMem_Free(decoded);
    return text;
}

/* Puts a value into a dictionary, and takes the reference to it; NULL is an exception. Returns whether it worked. */
static int put(PyObject *dictionary, PyObject *key, PyObject *value) {
    int done = value != NULL && PyDict_SetItem(dictionary, key, value) == 0;
    Py_XDECREF(value);
    return done;
}

static PyObject *text_of(const Span *span) {
    return make_text(span->text, span->size);
}

static PyObject *shared(State *state, const Span *span) {
    return shared_text(state, span->text, span->size);
}

#endif
