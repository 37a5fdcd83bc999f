/* MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), as far as heads of requests and responses need
 * it. Bytes are never trusted: every read is checked against the end of the buffer.
 */

#ifndef MESSAGEPACK_H
#define MESSAGEPACK_H

#include <stddef.h>
#include <string.h>

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

/* Writing */

static void write_number(unsigned char **at, size_t number, int width) {
    for (int i = width; i-- > 0;)
        *(*at)++ = (unsigned char)(number >> (8 * i));
}

/* How a kind of value begins: one that is shorter than `limit` has its size in the mark `fixed`. */
typedef struct {
    unsigned char fixed, first; /* `first` comes before a size of `width` bytes, the next ones before twice as many */
    int width;
    size_t limit;
} Mark;

static const Mark ARRAY = {0x90, 0xdc, 2, 16}, TEXT = {0xa0, 0xd9, 1, 32}, BYTES = {0, 0xc4, 1, 0};

/* The bytes of a size, as few as possible; 0 for one in the mark. */
static int width_of(const Mark *mark, size_t size) {
    if (size < mark->limit)
        return 0;
    int width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
    return width < mark->width ? mark->width : width;
}

/* The bytes of a mark and its size. */
static size_t sized(const Mark *mark, size_t size) {
    return 1 + (size_t)width_of(mark, size);
}

static void write_mark(unsigned char **at, const Mark *mark, size_t size) {
    int width = width_of(mark, size);
    *(*at)++ = (unsigned char)(width == 0 ? mark->fixed | size : mark->first + (width / mark->width) / 2u);
    write_number(at, size, width);
}

static void write_body(unsigned char **at, const char *bytes, size_t size) {
    memcpy(*at, bytes, size);
    *at += size;
}

#endif
