/* The hot loop of a worker for PSGI, and the codec, compiled: Parkade::Compiled.
 *
 * The loop does what Perl does in Parkade::Link, Parkade::Session, Parkade::PSGI and Parkade::PSGI::Response for the usual
 * request, whose body is in its frame, and the usual response, an array of plain strings: read(2), environment, the
 * application's code, write(2). Everything else it leaves to Perl, before it has changed anything: frames of other
 * kinds, requests whose form is unusual (Perl refuses what is to be refused), and responses that are not plain. So
 * every rule has one implementation, except for the usual case. t/compiled.t holds both to the same bytes.
 *
 * Bytes are never trusted: every read is checked against the end of the frame.
 */

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "perliol.h"
#include "XSUB.h"

#include <stdint.h>
#include <unistd.h>

#ifndef G_LIST /* before Perl 5.36 */
#define G_LIST G_ARRAY
#endif

/* Of frames (protocol/PROTOCOL.md, section 1). */
#define HEADER_SIZE 12
#define FRAME_MAX 1048576
#define INLINE_MAX 65536
#define BRANCH_FIRST 0x80000000U
#define F_REQUEST 0x10
#define F_RESPONSE 0x11
#define MORE 1
#define SECONDS_MAX 1e15

/* A buffer above this is given back when it is empty. */
#define BUFFER_KEPT 262144

/* The members of each environment. */
#define MEMBERS(is)                                                                                                    \
    is(METHOD, "REQUEST_METHOD") is(SCRIPT, "SCRIPT_NAME") is(PATH, "PATH_INFO") is(URI, "REQUEST_URI")                \
    is(QUERY, "QUERY_STRING") is(PROTOCOL, "SERVER_PROTOCOL") is(SERVER, "SERVER_NAME") is(PORT, "SERVER_PORT")        \
    is(CLIENT, "REMOTE_ADDR") is(CLIENT_PORT, "REMOTE_PORT") is(HOST, "HTTP_HOST") is(COOKIE, "HTTP_COOKIE")           \
    is(LENGTH, "CONTENT_LENGTH") is(SCHEME, "psgi.url_scheme") is(INPUT, "psgi.input")                                 \
    is(NONBLOCKING, "psgi.nonblocking") is(CLEANUP, "psgix.cleanup.handlers") is(COMMIT, "psgix.harakiri.commit")      \
    is(ID, "parkade.request_id") is(DEADLINE, "parkade.deadline") is(ON_CANCEL, "parkade.on_cancel")                   \
    is(PUBLISH, "parkade.publish")

#define NAMED(name, text) K_##name,
enum { MEMBERS(NAMED) K_COUNT };

#define WRITTEN(name, text) text,
static const char *const member_names[] = {MEMBERS(WRITTEN)};

/* Names of fields, with the keys that they have in an environment. A name that clients choose evicts one other. */
#define NAME_MAX_CACHED 47
#define SLOTS 128

typedef struct {
    STRLEN size;
    char name[NAME_MAX_CACHED + 1];
    SV *key; /* &PL_sv_undef for a field that is left out, NULL for none yet */
} Slot;

#define MY_CXT_KEY "Parkade::Compiled::_guts"

typedef struct {
    U8 *bytes;
    STRLEN size;
    STRLEN room;
} Buffer;

typedef struct {
    SV *keys[K_COUNT];
    Slot slots[SLOTS];
    Buffer encoded;
} my_cxt_t;

START_MY_CXT

static void begin_context(pTHX_ my_cxt_t *cxt) {
    for (int i = 0; i < K_COUNT; i++)
        cxt->keys[i] = newSVpvn_share(member_names[i], (I32)strlen(member_names[i]), 0);
    for (int i = 0; i < SLOTS; i++)
        cxt->slots[i].key = NULL;
    Zero(&cxt->encoded, 1, Buffer);
}

/* Reading MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) */

typedef struct {
    const U8 *at;
    const U8 *end;
} Reader;

typedef struct {
    const char *bytes;
    STRLEN size;
} Text;

static int left(const Reader *reader, STRLEN count) {
    return (STRLEN)(reader->end - reader->at) >= count;
}

static U32 number_at(const U8 *at, int width) {
    U32 number = 0;
    for (int i = 0; i < width; i++)
        number = number << 8 | at[i];
    return number;
}

/* A big-endian number of 1, 2 or 4 bytes. */
static int read_number(Reader *reader, int width, STRLEN *number) {
    if (!left(reader, (STRLEN)width))
        return 0;
    *number = number_at(reader->at, width);
    reader->at += width;
    return 1;
}

static int read_count(Reader *reader, STRLEN *number) {
    if (!left(reader, 1))
        return 0;
    U8 mark = *reader->at++;
    if (mark < 0x80) {
        *number = mark;
        return 1;
    }
    return mark >= 0xcc && mark <= 0xce && read_number(reader, 1 << (mark - 0xcc), number);
}

static int read_array(Reader *reader, STRLEN *count) {
    if (!left(reader, 1))
        return 0;
    U8 mark = *reader->at++;
    if (mark >= 0x90 && mark <= 0x9f) {
        *count = mark & 0x0f;
        return 1;
    }
    return (mark == 0xdc || mark == 0xdd) && read_number(reader, mark == 0xdc ? 2 : 4, count);
}

static int read_content(Reader *reader, Text *text) {
    if (!left(reader, text->size))
        return 0;
    text->bytes = (const char *)reader->at;
    reader->at += text->size;
    return 1;
}

static int is_ascii(const char *text, STRLEN size) {
    U8 all = 0;
    for (STRLEN i = 0; i < size; i++)
        all |= (U8)text[i];
    return all < 0x80;
}

/* Text in ASCII: of any other, Perl checks that it is UTF-8. */
static int read_text(Reader *reader, Text *text) {
    if (!left(reader, 1))
        return 0;
    U8 mark = *reader->at++;
    if (mark >= 0xa0 && mark <= 0xbf)
        text->size = mark & 0x1f;
    else if (mark < 0xd9 || mark > 0xdb || !read_number(reader, 1 << (mark - 0xd9), &text->size))
        return 0;
    return read_content(reader, text) && is_ascii(text->bytes, text->size);
}

static int read_bytes(Reader *reader, Text *bytes) {
    if (!left(reader, 1))
        return 0;
    U8 mark = *reader->at++;
    return mark >= 0xc4 && mark <= 0xc6 && read_number(reader, 1 << (mark - 0xc4), &bytes->size) &&
           read_content(reader, bytes);
}

typedef struct {
    enum { NO_SECONDS, WHOLE, FRACTION } kind;
    STRLEN whole;
    NV fraction;
} Seconds;

static int read_seconds(Reader *reader, Seconds *seconds) {
    if (!left(reader, 1))
        return 0;
    if (*reader->at == 0xc0) {
        reader->at++;
        seconds->kind = NO_SECONDS;
        return 1;
    }
    if (*reader->at == 0xcb && left(reader, 9)) {
        uint64_t bits = (uint64_t)number_at(reader->at + 1, 4) << 32 | number_at(reader->at + 5, 4);
        double told;
        memcpy(&told, &bits, sizeof told);
        seconds->kind = FRACTION;
        seconds->fraction = told;
        reader->at += 9;
        return told >= 0 && told <= SECONDS_MAX;
    }
    seconds->kind = WHOLE;
    return read_count(reader, &seconds->whole);
}

static int is_text(const char *text, STRLEN size, const char *other) {
    return size == strlen(other) && memcmp(text, other, size) == 0;
}

/* The environment */

static void put(pTHX_ my_cxt_t *cxt, HV *env, int key, SV *value) {
    if (!hv_store_ent(env, cxt->keys[key], value, SvSHARED_HASH(cxt->keys[key])))
        SvREFCNT_dec(value);
}

/* The key of a field; &PL_sv_undef for one that is left out (Parkade::PSGI::Environment says why). */
static SV *make_key(pTHX_ const char *name, STRLEN size) {
    if (is_text(name, size, "transfer-encoding") || is_text(name, size, "proxy") || memchr(name, '_', size) != NULL)
        return &PL_sv_undef;
    int is_plain = is_text(name, size, "content-type") || is_text(name, size, "content-length");
    STRLEN prefix = is_plain ? 0 : 5;
    char *key;
    Newx(key, prefix + size + 1, char);
    memcpy(key, "HTTP_", prefix);
    for (STRLEN i = 0; i < size; i++) {
        char letter = name[i];
        key[prefix + i] = letter == '-' ? '_' : letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
    }
    SV *made = newSVpvn_share(key, (I32)(prefix + size), 0);
    Safefree(key);
    return made;
}

/* The same, remembered; a new one that dies with the current scope if the name is too long for that. */
static SV *key_of(pTHX_ my_cxt_t *cxt, Text name) {
    if (name.size > NAME_MAX_CACHED) {
        SV *made = make_key(aTHX_ name.bytes, name.size);
        return made == &PL_sv_undef ? made : sv_2mortal(made);
    }
    U32 hash = 2166136261u; /* FNV-1a */
    for (STRLEN i = 0; i < name.size; i++)
        hash = (hash ^ (U8)name.bytes[i]) * 16777619u;
    Slot *slot = &cxt->slots[(hash ^ hash >> 16) % SLOTS];
    if (slot->key == NULL || slot->size != name.size || memcmp(slot->name, name.bytes, name.size) != 0) {
        if (slot->key != NULL && slot->key != &PL_sv_undef)
            SvREFCNT_dec(slot->key);
        slot->size = name.size;
        memcpy(slot->name, name.bytes, name.size);
        slot->key = make_key(aTHX_ name.bytes, name.size);
    }
    return slot->key;
}

static int put_fields(pTHX_ my_cxt_t *cxt, HV *env, Reader *reader) {
    STRLEN count;
    if (!read_array(reader, &count) || count % 2)
        return 0;
    for (STRLEN i = 0; i < count; i += 2) {
        Text name, value;
        if (!read_text(reader, &name) || !read_bytes(reader, &value))
            return 0;
        SV *key = key_of(aTHX_ cxt, name);
        if (key == &PL_sv_undef)
            continue;
        HE *entry = hv_fetch_ent(env, key, 1, SvSHARED_HASH(key));
        if (entry == NULL)
            return 0;
        SV *field = HeVAL(entry);
        if (SvOK(field)) {
            sv_catpvn(field, is_text(name.bytes, name.size, "cookie") ? "; " : ", ", 2);
            sv_catpvn(field, value.bytes, value.size);
        } else {
            sv_setpvn(field, value.bytes, value.size);
        }
    }
    return 1;
}

static int hex_digit(char letter) {
    return letter >= '0' && letter <= '9'   ? letter - '0'
           : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
           : letter >= 'A' && letter <= 'F' ? letter - 'A' + 10
                                            : -1;
}

static SV *decoded(pTHX_ Text path) {
    if (memchr(path.bytes, '%', path.size) == NULL)
        return newSVpvn(path.bytes, path.size);
    SV *made = newSV(path.size + 1);
    char *to = SvPVX(made);
    for (STRLEN i = 0; i < path.size; i++) {
        int high = -1, low = -1;
        if (path.bytes[i] == '%' && path.size - i > 2) {
            high = hex_digit(path.bytes[i + 1]);
            low = hex_digit(path.bytes[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            *to++ = (char)(high << 4 | low);
            i += 2;
        } else {
            *to++ = path.bytes[i];
        }
    }
    *to = '\0';
    SvCUR_set(made, to - SvPVX(made));
    (void)SvPOK_only(made);
    return made;
}

/* The fields of a query */

#define FIELDS_MAX 1000 /* Parkade::Request refuses more */

/* Characters, if the bytes are UTF-8. */
static SV *characters(pTHX_ const char *text, STRLEN size) {
    Text part = {text, size};
    SV *made = decoded(aTHX_ part);
    if (!is_ascii(SvPVX_const(made), SvCUR(made)))
        (void)sv_utf8_decode(made);
    return made;
}

/* Adds a field to those of the same name. */
static void put_field(pTHX_ HV *fields, SV *name, SV *value) {
    HE *entry = hv_fetch_ent(fields, name, 1, 0);
    if (entry == NULL) {
        SvREFCNT_dec(value);
        return;
    }
    if (!SvROK(HeVAL(entry)))
        sv_setsv(HeVAL(entry), sv_2mortal(newRV_noinc((SV *)newAV())));
    av_push((AV *)SvRV(HeVAL(entry)), value);
}

static void put_query(pTHX_ HV *fields, char *at, char *end) {
    for (char *i = at; i < end; i++)
        if (*i == '+')
            *i = ' ';
    while (at < end) {
        char *stop = (char *)memchr(at, '&', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        char *sign = (char *)memchr(at, '=', (size_t)(stop - at));
        char *value = sign == NULL ? stop : sign + 1;
        SV *name = sv_2mortal(characters(aTHX_ at, (STRLEN)((sign == NULL ? stop : sign) - at)));
        if (SvCUR(name) > 0)
            put_field(aTHX_ fields, name, characters(aTHX_ value, (STRLEN)(stop - value)));
        at = stop + 1;
    }
}

/* The fields of the query in an encoded head; NULL if that is unusual. */
static HV *fields_of(pTHX_ Reader *reader) {
    STRLEN elements, count = 0;
    Text method, path, query;
    if (!read_array(reader, &elements) || (elements != 8 && elements != 11) || !read_text(reader, &method) ||
        !read_text(reader, &path) || !read_text(reader, &query))
        return NULL;
    for (STRLEN i = 0; i < query.size; i++)
        count += query.bytes[i] == '&' || query.bytes[i] == ';';
    if (count >= FIELDS_MAX)
        return NULL;
    HV *fields = newHV();
    SV *copy = sv_2mortal(newSVpvn(query.bytes, query.size));
    put_query(aTHX_ fields, SvPVX(copy), SvEND(copy));
    return fields;
}

/* At a Unix socket, the server is what the client calls it. */
static void put_server_of_host(pTHX_ my_cxt_t *cxt, HV *env, int is_https) {
    HE *entry = hv_fetch_ent(env, cxt->keys[K_HOST], 0, SvSHARED_HASH(cxt->keys[K_HOST]));
    STRLEN size = 0;
    const char *host = entry == NULL ? "" : SvPV(HeVAL(entry), size);
    STRLEN name = size;
    while (name > 0 && host[name - 1] >= '0' && host[name - 1] <= '9')
        name--;
    int has_port = name > 0 && name < size && host[name - 1] == ':';
    SV *port = has_port ? newSVpvn(host + name, size - name) : NULL;
    name = has_port ? name - 1 : size;
    if (port != NULL && !SvTRUE(port)) {
        SvREFCNT_dec(port);
        port = NULL;
    }
    put(aTHX_ cxt, env, K_SERVER, name > 0 ? newSVpvn(host, name) : newSVpvs("localhost"));
    put(aTHX_ cxt, env, K_PORT, port != NULL ? port : newSViv(is_https ? 443 : 80));
}

static SV *protocol_of(pTHX_ Text version) {
    if (is_text(version.bytes, version.size, "1.1"))
        return newSVpvs("HTTP/1.1");
    if (is_text(version.bytes, version.size, "2"))
        return newSVpvs("HTTP/2.0");
    SV *protocol = newSVpvs("HTTP/");
    sv_catpvn(protocol, version.bytes, version.size);
    return protocol;
}

/* Fills the environment from an encoded head; 0 if that is unusual. */
static int put_head(pTHX_ my_cxt_t *cxt, HV *env, Reader *reader) {
    STRLEN elements, client_port = 0, port = 0;
    Text method, path, query, client, scheme, version, id, server;
    if (!read_array(reader, &elements) || (elements != 8 && elements != 11))
        return 0;
    if (!read_text(reader, &method) || !read_text(reader, &path) || !read_text(reader, &query) ||
        !put_fields(aTHX_ cxt, env, reader) || !read_text(reader, &client) || !read_text(reader, &scheme) ||
        !read_text(reader, &version) || !read_text(reader, &id))
        return 0;
    if (elements == 11 &&
        (!read_count(reader, &client_port) || !read_text(reader, &server) || !read_count(reader, &port)))
        return 0;
    if (reader->at != reader->end || client_port > 65535 || port > 65535)
        return 0;
    if (port > 0) {
        put(aTHX_ cxt, env, K_SERVER, newSVpvn(server.bytes, server.size));
        put(aTHX_ cxt, env, K_PORT, newSViv((IV)port));
    } else {
        put_server_of_host(aTHX_ cxt, env, is_text(scheme.bytes, scheme.size, "https"));
    }
    if (client_port > 0)
        put(aTHX_ cxt, env, K_CLIENT_PORT, newSViv((IV)client_port));
    put(aTHX_ cxt, env, K_METHOD, newSVpvn(method.bytes, method.size));
    put(aTHX_ cxt, env, K_SCRIPT, newSVpvs(""));
    put(aTHX_ cxt, env, K_PATH, decoded(aTHX_ path));
    SV *uri = newSVpvn(path.bytes, path.size);
    if (query.size > 0) {
        sv_catpvs(uri, "?");
        sv_catpvn(uri, query.bytes, query.size);
    }
    put(aTHX_ cxt, env, K_URI, uri);
    put(aTHX_ cxt, env, K_QUERY, newSVpvn(query.bytes, query.size));
    put(aTHX_ cxt, env, K_PROTOCOL, protocol_of(aTHX_ version));
    put(aTHX_ cxt, env, K_CLIENT, newSVpvn(client.bytes, client.size));
    put(aTHX_ cxt, env, K_SCHEME, newSVpvn(scheme.bytes, scheme.size));
    put(aTHX_ cxt, env, K_ID, newSVpvn(id.bytes, id.size));
    return 1;
}

/* psgi.input */

/* A handle that reads these bytes; NULL if there is none to be had. */
static SV *handle_of(pTHX_ SV *bytes) {
    GV *handle = (GV *)newSV(0);
    gv_init(handle, gv_stashpvs("Parkade::PSGI::Input", GV_ADD), "$handle", 7, 0); /* as Perl names it in messages */
    SV *reference = newRV_noinc((SV *)handle);
    SV *source = newRV_inc(bytes);
    PerlIO *file = PerlIO_openn(aTHX_ NULL, "r", -1, 0, 0, NULL, 1, &source);
    SvREFCNT_dec(source);
    if (file == NULL) {
        SvREFCNT_dec(reference);
        return NULL;
    }
    IO *io = GvIOn(handle);
    IoTYPE(io) = IoTYPE_RDONLY;
    IoIFP(io) = file;
    return reference;
}

/* psgi.input of requests without a body. */
typedef struct {
    SV *handle, *bytes;
    PerlIO *file;
} Empty;

static void free_empty(pTHX_ Empty *empty) {
    SvREFCNT_dec(empty->handle);
    SvREFCNT_dec(empty->bytes);
    Zero(empty, 1, Empty);
}

static int make_empty(pTHX_ Empty *empty) {
    empty->bytes = newSVpvs("");
    empty->handle = handle_of(aTHX_ empty->bytes);
    if (empty->handle == NULL) {
        free_empty(aTHX_ empty);
        return 0;
    }
    empty->file = IoIFP(GvIOp((GV *)SvRV(empty->handle)));
    return 1;
}

/* Whether nobody else knows the handle, and nothing has been done to it but reading: then it is rewound. */
static int is_as_new(pTHX_ const Empty *empty) {
    if (empty->handle == NULL)
        return 0;
    GV *handle = (GV *)SvRV(empty->handle);
    PerlIO *file = empty->file;
    if (SvREFCNT(handle) != 1 || SvTYPE(handle) != SVt_PVGV || SvOBJECT(handle) || SvMAGICAL(handle) ||
        GvREFCNT(handle) != 1 || SvREFCNT(empty->bytes) != 2)
        return 0;
    GP *glob = GvGP(handle);
    IO *io = glob->gp_io;
    if (io == NULL || SvREFCNT(io) != 1 || SvMAGICAL(io) || IoIFP(io) != file || glob->gp_sv != NULL ||
        glob->gp_av != NULL || glob->gp_hv != NULL || glob->gp_cv != NULL)
        return 0;
    if (strNE(PerlIOBase(file)->tab->name, "scalar") || PerlIOBase(file)->flags & PERLIO_F_UTF8)
        return 0;
    IoLINES(io) = 0;
    IoFLAGS(io) = 0; /* among them, that a read has told the end */
    PerlIO_clearerr(file);
    return PerlIO_seek(file, 0, SEEK_SET) == 0 && PerlIO_get_cnt(file) == 0;
}

/* As if the handle were gone, which it would be by now in Perl: otherwise messages would say how many lines were read. */
static void forget_last_read(pTHX_ const Empty *empty) {
    GV *handle = empty->handle == NULL ? NULL : (GV *)SvRV(empty->handle);
    if (handle != NULL && PL_last_in_gv == handle && SvREFCNT(handle) == 1)
        PL_last_in_gv = NULL;
}

/* Writing */

static U8 *more(Buffer *buffer, STRLEN size) {
    if (buffer->room - buffer->size < size) {
        buffer->room = (buffer->size + size) / 2 * 3 + 1024;
        Renew(buffer->bytes, buffer->room, U8);
    }
    U8 *at = buffer->bytes + buffer->size;
    buffer->size += size;
    return at;
}

static void add_number(Buffer *buffer, U32 number, int width) {
    U8 *at = more(buffer, (STRLEN)width);
    for (int i = width - 1; i >= 0; i--, number >>= 8)
        at[i] = (U8)number;
}

static void add_byte(Buffer *buffer, U8 byte) {
    *more(buffer, 1) = byte;
}

static void add_content(Buffer *buffer, const char *bytes, STRLEN size) {
    if (size > 0)
        memcpy(more(buffer, size), bytes, size);
}

static void clear(Buffer *buffer) {
    buffer->size = 0;
    if (buffer->room > BUFFER_KEPT) {
        Safefree(buffer->bytes);
        Zero(buffer, 1, Buffer);
    }
}

/* The first bytes of text or bytes: a mark `one`, `one` + 1 or `one` + 2, and the length. */
static void add_length(Buffer *buffer, STRLEN size, U8 one) {
    int width = size < 0x100 ? 1 : size < 0x10000 ? 2 : 4;
    add_byte(buffer, (U8)(one + (width >> 1)));
    add_number(buffer, (U32)size, width);
}

static void add_bytes(Buffer *buffer, const char *bytes, STRLEN size) {
    add_length(buffer, size, 0xc4);
    add_content(buffer, bytes, size);
}

static void add_text(Buffer *buffer, const char *text, STRLEN size) {
    if (size < 32)
        add_byte(buffer, (U8)(0xa0 | size));
    else
        add_length(buffer, size, 0xd9);
    add_content(buffer, text, size);
}

/* The response */

/* A value that reading has no effect on. */
static int is_plain(SV *value) {
    return value != NULL && !SvROK(value) && !SvGMAGICAL(value) && SvTYPE(value) <= SVt_PVMG;
}

/* An array that reading has no effect on; NULL if it is anything else. */
static AV *array_of(SV *value) {
    if (value == NULL || SvGMAGICAL(value) || !SvROK(value))
        return NULL;
    SV *array = SvRV(value);
    return SvTYPE(array) == SVt_PVAV && !SvOBJECT(array) && !SvRMAGICAL(array) ? (AV *)array : NULL;
}

static SV *element(AV *array, SSize_t number) {
    return AvARRAY(array)[number];
}

/* The bytes of a string; 0 for one that only Perl can tell. */
static int bytes_of(SV *value, Text *told) {
    if (!is_plain(value) || !SvPOK(value))
        return 0;
    told->bytes = SvPVX_const(value);
    told->size = SvCUR(value);
    return !SvUTF8(value) || is_ascii(told->bytes, told->size);
}

static int status_of(SV *value) {
    IV status = 0;
    if (!is_plain(value))
        return 0;
    if (SvIOK(value) && !SvPOK(value)) {
        status = SvIVX(value);
    } else if (SvPOK(value) && SvCUR(value) == 3) {
        for (int i = 0; i < 3; i++) {
            char digit = SvPVX_const(value)[i];
            if (digit < '0' || digit > '9')
                return 0;
            status = status * 10 + (digit - '0');
        }
    }
    return status >= 200 && status <= 599 && status != 304 ? (int)status : 0; /* of 304, fields are left out */
}

static int add_fields(Buffer *buffer, AV *fields) {
    SSize_t count = AvFILLp(fields) + 1;
    if (count % 2)
        return 0;
    if (count < 16) {
        add_byte(buffer, (U8)(0x90 | count));
    } else {
        if (count > 0xffff)
            return 0;
        add_byte(buffer, 0xdc);
        add_number(buffer, (U32)count, 2);
    }
    for (SSize_t i = 0; i < count; i += 2) {
        Text name, text;
        char digits[24];
        SV *value = element(fields, i + 1);
        if (!bytes_of(element(fields, i), &name) || !is_ascii(name.bytes, name.size))
            return 0;
        add_text(buffer, name.bytes, name.size);
        if (is_plain(value) && !SvOK(value)) {
            text.bytes = "";
            text.size = 0;
        } else if (is_plain(value) && SvIOK(value) && !SvPOK(value) && !SvNOK(value) && !SvIsUV(value)) {
            text.bytes = digits; /* a Content-Length */
            text.size = (STRLEN)my_snprintf(digits, sizeof digits, "%" IVdf, SvIVX(value));
        } else if (!bytes_of(value, &text)) {
            return 0;
        }
        add_bytes(buffer, text.bytes, text.size);
    }
    return 1;
}

static int add_body(Buffer *buffer, AV *pieces) {
    STRLEN size = 0;
    Text piece;
    SSize_t count = AvFILLp(pieces) + 1;
    for (SSize_t i = 0; i < count; i++) {
        SV *value = element(pieces, i);
        if (value == NULL || (is_plain(value) && !SvOK(value)))
            continue;
        if (!bytes_of(value, &piece) || piece.size > INLINE_MAX)
            return 0;
        size += piece.size;
        if (size > INLINE_MAX)
            return 0;
    }
    add_length(buffer, size, 0xc4);
    for (SSize_t i = 0; i < count; i++)
        if (element(pieces, i) != NULL && bytes_of(element(pieces, i), &piece))
            add_content(buffer, piece.bytes, piece.size);
    return 1;
}

/* The whole frame of a response; 0 if that is not plain. */
static int add_response(Buffer *buffer, U32 stream, SV *response) {
    buffer->size = 0;
    AV *parts = array_of(response);
    if (parts == NULL || AvFILLp(parts) < 2)
        return 0;
    int status = status_of(element(parts, 0));
    AV *fields = array_of(element(parts, 1)), *pieces = array_of(element(parts, 2));
    if (status == 0 || fields == NULL || pieces == NULL)
        return 0;
    more(buffer, HEADER_SIZE);
    add_byte(buffer, 0x93);
    add_byte(buffer, status < 0x100 ? 0xcc : 0xcd);
    add_number(buffer, (U32)status, status < 0x100 ? 1 : 2);
    if (!add_fields(buffer, fields) || !add_body(buffer, pieces) || buffer->size - HEADER_SIZE > FRAME_MAX)
        return 0;
    STRLEN size = buffer->size;
    buffer->size = 0;
    add_number(buffer, (U32)(size - HEADER_SIZE), 4);
    add_byte(buffer, F_RESPONSE);
    add_number(buffer, 0, 3);
    add_number(buffer, stream, 4);
    buffer->size = size;
    return 1;
}

/* Any plain data, as Parkade::MessagePack writes it: numbers and text by the same rule. Nothing of Perl runs here. */

#define DEPTH_MAX 500
#define KEYS_MAX 64 /* of a hash; Perl sorts more */

static int add_value(pTHX_ Buffer *buffer, SV *value, int depth);

static void add_wide(Buffer *buffer, uint64_t number, int width) {
    if (width == 8) {
        add_number(buffer, (U32)(number >> 32), 4);
        width = 4;
    }
    add_number(buffer, (U32)number, width);
}

static void add_integer(Buffer *buffer, SV *value) {
    uint64_t bits = SvIsUV(value) ? (uint64_t)SvUVX(value) : (uint64_t)(int64_t)SvIVX(value);
    if (SvIsUV(value) || SvIVX(value) >= 0) {
        int step = bits < 0x100 ? 0 : bits < 0x10000 ? 1 : bits <= 0xffffffff ? 2 : 3;
        if (bits >= 0x80)
            add_byte(buffer, (U8)(0xcc + step));
        add_wide(buffer, bits, 1 << step);
        return;
    }
    int64_t number = (int64_t)bits;
    int step = number >= -0x80 ? 0 : number >= -0x8000 ? 1 : number >= -0x80000000LL ? 2 : 3;
    if (number < -0x20)
        add_byte(buffer, (U8)(0xd0 + step));
    add_wide(buffer, bits, 1 << step);
}

static void add_float(Buffer *buffer, NV number) {
    double told = (double)number;
    uint64_t bits;
    memcpy(&bits, &told, sizeof bits);
    add_byte(buffer, 0xcb);
    add_wide(buffer, bits, 8);
}

/* Characters; 0 if Perl has to replace some that are no part of UTF-8. */
static int add_characters(Buffer *buffer, const char *text, STRLEN size, int is_utf8) {
    if (size > FRAME_MAX)
        return 0;
    if (is_ascii(text, size)) {
        add_text(buffer, text, size);
        return 1;
    }
    if (is_utf8) {
        if (!is_c9strict_utf8_string((const U8 *)text, size))
            return 0;
        add_text(buffer, text, size);
        return 1;
    }
    STRLEN written = size;
    for (STRLEN i = 0; i < size; i++)
        written += (U8)text[i] >> 7;
    if (written < 32)
        add_byte(buffer, (U8)(0xa0 | written));
    else
        add_length(buffer, written, 0xd9);
    U8 *at = more(buffer, written);
    for (STRLEN i = 0; i < size; i++) {
        U8 byte = (U8)text[i];
        if (byte < 0x80) {
            *at++ = byte;
        } else {
            *at++ = (U8)(0xc0 | byte >> 6);
            *at++ = (U8)(0x80 | (byte & 0x3f));
        }
    }
    return 1;
}

static int add_scalar(Buffer *buffer, SV *value) {
    if (SvPOK(value))
        return add_characters(buffer, SvPVX_const(value), SvCUR(value), SvUTF8(value) != 0);
    if (SvIOK(value)) /* else, if both are set, the float may be another number */
        add_integer(buffer, value);
    else if (SvNOK(value) && !SvIOKp(value))
        add_float(buffer, SvNVX(value));
    else
        return 0;
    return 1;
}

/* A number that was used as text: Perl looks at a copy, and whether that is text depends on the version of Perl. */
static int add_copy(pTHX_ Buffer *buffer, SV *value) {
    SV *copy = newSVsv(value);
    int is_added = add_scalar(buffer, copy);
    SvREFCNT_dec(copy);
    return is_added;
}

/* The head of an array or a map. */
static void add_count(Buffer *buffer, STRLEN count, U8 few, U8 many) {
    if (count < 16) {
        add_byte(buffer, (U8)(few | count));
        return;
    }
    int width = count < 0x10000 ? 2 : 4;
    add_byte(buffer, width == 2 ? many : (U8)(many + 1));
    add_number(buffer, (U32)count, width);
}

static int add_elements(pTHX_ Buffer *buffer, AV *array, int depth) {
    SSize_t count = AvFILLp(array) + 1;
    for (SSize_t i = 0; i < count; i++) {
        SV *value = element(array, i);
        if (value == NULL)
            add_byte(buffer, 0xc0);
        else if (!add_value(aTHX_ buffer, value, depth + 1))
            return 0;
    }
    return 1;
}

static int by_key(const void *left, const void *right) {
    const HEK *one = HeKEY_hek(*(HE *const *)left), *other = HeKEY_hek(*(HE *const *)right);
    I32 size = HEK_LEN(one) < HEK_LEN(other) ? HEK_LEN(one) : HEK_LEN(other);
    int order = memcmp(HEK_KEY(one), HEK_KEY(other), (size_t)size);
    return order != 0 ? order : HEK_LEN(one) < HEK_LEN(other) ? -1 : HEK_LEN(one) > HEK_LEN(other);
}

static int add_hash(pTHX_ Buffer *buffer, HV *hash, int depth) {
    HE *entries[KEYS_MAX];
    HE *entry;
    STRLEN count = 0;
    (void)hv_iterinit(hash);
    while ((entry = hv_iternext(hash)) != NULL) {
        if (count == KEYS_MAX || HeKLEN(entry) < 0 || !is_ascii(HeKEY(entry), (STRLEN)HeKLEN(entry)))
            break;
        entries[count++] = entry;
    }
    (void)hv_iterinit(hash); /* as Perl leaves it */
    if (entry != NULL)
        return 0;
    qsort(entries, count, sizeof *entries, by_key);
    add_count(buffer, count, 0x80, 0xde);
    for (STRLEN i = 0; i < count; i++) {
        if (!add_characters(buffer, HeKEY(entries[i]), (STRLEN)HeKLEN(entries[i]), 0) ||
            !add_value(aTHX_ buffer, HeVAL(entries[i]), depth + 1))
            return 0;
    }
    return 1;
}

/* What is in a reference to a scalar; NULL if reading it might have an effect. */
static SV *content_of(SV *target) {
    return is_plain(target) && !SvVOK(target) ? target : NULL;
}

static int add_bytes_object(Buffer *buffer, SV *target) {
    SV *content = content_of(target);
    Text bytes;
    if (content == NULL || !bytes_of(content, &bytes) || bytes.size > FRAME_MAX)
        return 0;
    add_bytes(buffer, bytes.bytes, bytes.size);
    return 1;
}

static int add_float_object(Buffer *buffer, SV *target) {
    SV *content = content_of(target);
    if (content == NULL || SvPOKp(content))
        return 0;
    if (SvNOK(content))
        add_float(buffer, SvNVX(content));
    else if (SvIOK(content))
        add_float(buffer, SvIsUV(content) ? (NV)SvUVX(content) : (NV)SvIVX(content));
    else
        return 0;
    return 1;
}

static int add_boolean(pTHX_ Buffer *buffer, SV *target) {
    SV *content = content_of(target);
    if (content == NULL)
        return 0;
    add_byte(buffer, SvTRUE_nomg(content) ? 0xc3 : 0xc2);
    return 1;
}

static int add_pairs(pTHX_ Buffer *buffer, AV *pairs, int depth) {
    STRLEN count = (STRLEN)(AvFILLp(pairs) + 1);
    if (count % 2)
        return 0;
    add_count(buffer, count / 2, 0x80, 0xde);
    return add_elements(aTHX_ buffer, pairs, depth);
}

static int add_object(pTHX_ Buffer *buffer, SV *target, int depth) {
    const char *name = HvNAME_get(SvSTASH(target));
    static const char ours[] = "Parkade::MessagePack::";
    if (name == NULL || strncmp(name, ours, sizeof ours - 1) != 0)
        return 0;
    name += sizeof ours - 1;
    if (strEQ(name, "Bytes"))
        return add_bytes_object(buffer, target);
    if (strEQ(name, "Boolean"))
        return add_boolean(aTHX_ buffer, target);
    if (strEQ(name, "Float"))
        return add_float_object(buffer, target);
    if (strEQ(name, "Ordered") && SvTYPE(target) == SVt_PVAV && !SvRMAGICAL(target))
        return add_pairs(aTHX_ buffer, (AV *)target, depth);
    return 0;
}

/* 0 for a value that only Perl can tell, or refuses. */
static int add_value(pTHX_ Buffer *buffer, SV *value, int depth) {
    if (SvGMAGICAL(value) || SvTYPE(value) > SVt_PVMG || buffer->size > FRAME_MAX)
        return 0;
    if (!SvROK(value)) {
        if (SvOK(value))
            return SvPOKp(value) && !SvPOK(value) ? add_copy(aTHX_ buffer, value) : add_scalar(buffer, value);
        add_byte(buffer, 0xc0);
        return 1;
    }
    SV *target = SvRV(value);
    if (depth > DEPTH_MAX)
        return 0;
    if (SvOBJECT(target))
        return add_object(aTHX_ buffer, target, depth);
    if (SvTYPE(target) == SVt_PVAV && !SvRMAGICAL(target)) {
        add_count(buffer, (STRLEN)(AvFILLp((AV *)target) + 1), 0x90, 0xdc);
        return add_elements(aTHX_ buffer, (AV *)target, depth);
    }
    if (SvTYPE(target) == SVt_PVHV && !SvRMAGICAL(target))
        return add_hash(aTHX_ buffer, (HV *)target, depth);
    if (SvTYPE(target) <= SVt_PVMG && !SvROK(target))
        return add_boolean(aTHX_ buffer, target);
    return 0;
}

/* The loop */

typedef struct {
    /* References to the link and to Parkade::PSGI, and the code of the application. */
    SV *link, *application, *code;
    /* Members of the link and of its session that both sides read and write. */
    SV *rest, *highest, *running, *leaving, *kept, *collecting;
    HV *streams, *cancelled, *waits;
    /* What is the same in each environment: keys and values in turn; and the prefix of the application. */
    AV *same;
    SV *root;
    /* What a request may do besides answering: who makes it, and the one that is in use. */
    SV *make_ticket, *on_cancel, *publish;
    AV *ticket;
    Empty empty;
    int reader, writer, is_guarded;
    STRLEN receive_size;
    Pid_t pid;
    Buffer out;
} Loop;

typedef struct {
    U32 stream;
    int has_route;
    STRLEN route, parameter_count;
    Reader parameters;
    Seconds deadline;
    Text body;
    Reader head;
} Request;

static int is_event_loop_loaded(pTHX) {
    HV *loaded = GvHV(PL_incgv);
    return loaded != NULL && hv_exists(loaded, "AnyEvent.pm", 11);
}

static SSize_t count_of(pTHX_ SV *reference) {
    return SvROK(reference) && SvTYPE(SvRV(reference)) == SVt_PVAV ? av_len((AV *)SvRV(reference)) + 1 : 0;
}

/* How many whole frames there are, if all of them are requests with their bodies; -1 if there is anything else. */
static int usual_frames(const U8 *at, STRLEN size) {
    int count = 0;
    while (size >= HEADER_SIZE) {
        U32 length = number_at(at, 4);
        if (length > FRAME_MAX)
            return -1;
        if (size - HEADER_SIZE < length)
            break;
        if (at[4] != F_REQUEST || at[5] & MORE)
            return -1;
        at += HEADER_SIZE + length;
        size -= HEADER_SIZE + length;
        count++;
    }
    return count;
}

/* The first request; 0 if it is unusual. */
static int read_request(const U8 *at, STRLEN size, Request *request) {
    if (size < HEADER_SIZE)
        return 0;
    U32 length = number_at(at, 4);
    if (length > size - HEADER_SIZE || at[4] != F_REQUEST || at[5] & MORE)
        return 0;
    request->stream = number_at(at + 8, 4);
    Reader reader = {at + HEADER_SIZE, at + HEADER_SIZE + length};
    STRLEN elements;
    Text parameter;
    if (!read_array(&reader, &elements) || elements != 5)
        return 0;
    request->has_route = !(left(&reader, 1) && *reader.at == 0xc0);
    if (!request->has_route)
        reader.at++;
    else if (!read_count(&reader, &request->route))
        return 0;
    if (!read_array(&reader, &request->parameter_count))
        return 0;
    request->parameters = reader;
    for (STRLEN i = 0; i < request->parameter_count; i++)
        if (!read_text(&reader, &parameter))
            return 0;
    if (!read_seconds(&reader, &request->deadline) || !read_bytes(&reader, &request->body))
        return 0;
    request->head = reader;
    return request->body.size <= INLINE_MAX;
}

/* Calls a method of the link or of the application; an exception goes on. */
static void call_perl(pTHX_ SV *object, const char *method, SV *first, SV *second, SV *third, SV *fourth) {
    SV *arguments[] = {first, second, third, fourth};
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    EXTEND(SP, 5);
    PUSHs(object);
    for (int i = 0; i < 4 && arguments[i] != NULL; i++)
        PUSHs(arguments[i]);
    PUTBACK;
    call_method(method, G_VOID | G_DISCARD);
    FREETMPS;
    LEAVE;
}

/* Called when the application's code is left by `exit`. */
static void abandoned(pTHX_ void *told) {
    Loop *loop = (Loop *)told;
    if (!loop->is_guarded)
        return;
    loop->is_guarded = 0;
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    XPUSHs(loop->link);
    PUTBACK;
    call_method("abandoned", G_VOID | G_DISCARD | G_EVAL);
    FREETMPS;
    LEAVE;
}

/* The closures of an environment. Those of the last request serve again, unless somebody has kept one. */
static void take_ticket(pTHX_ Loop *loop) {
    if (loop->ticket != NULL && SvREFCNT(SvRV(loop->on_cancel)) == 1 && SvREFCNT(SvRV(loop->publish)) == 1) {
        sv_setsv(element(loop->ticket, 1), &PL_sv_undef);
        return;
    }
    dSP;
    PUSHMARK(SP);
    XPUSHs(loop->link);
    PUTBACK;
    int count = call_sv(loop->make_ticket, G_LIST);
    SPAGAIN;
    AV *ticket = count == 3 ? array_of(SP[-2]) : NULL;
    if (ticket == NULL || AvFILLp(ticket) != 1 || !SvROK(SP[-1]) || !SvROK(SP[0]))
        croak("Parkade::Compiled: no ticket");
    SV *before[] = {(SV *)loop->ticket, loop->on_cancel, loop->publish};
    loop->ticket = (AV *)SvREFCNT_inc((SV *)ticket);
    loop->on_cancel = newSVsv(SP[-1]);
    loop->publish = newSVsv(SP[0]);
    SP -= 3;
    PUTBACK;
    for (int i = 0; i < 3; i++)
        SvREFCNT_dec(before[i]);
}

static SV *input_of(pTHX_ Loop *loop, Text body) {
    if (body.size > 0)
        return handle_of(aTHX_ sv_2mortal(newSVpvn(body.bytes, body.size)));
    if (!is_as_new(aTHX_ &loop->empty)) {
        free_empty(aTHX_ &loop->empty);
        if (!make_empty(aTHX_ &loop->empty))
            return NULL;
    }
    return newSVsv(loop->empty.handle);
}

/* Some proxies leave the prefix in the path and some remove it. */
static void put_root(pTHX_ my_cxt_t *cxt, Loop *loop, HV *env) {
    STRLEN size, length;
    const char *root = SvPV_const(loop->root, size);
    HE *entry = size == 0 ? NULL : hv_fetch_ent(env, cxt->keys[K_PATH], 0, SvSHARED_HASH(cxt->keys[K_PATH]));
    if (entry == NULL)
        return;
    put(aTHX_ cxt, env, K_SCRIPT, newSVpvn(root, size));
    const char *path = SvPV_const(HeVAL(entry), length);
    if (length >= size && memcmp(path, root, size) == 0 && (length == size || path[size] == '/'))
        sv_chop(HeVAL(entry), path + size);
}

static SV *seconds_of(pTHX_ const Seconds *seconds) {
    if (seconds->kind == WHOLE)
        return newSVuv(seconds->whole);
    if (seconds->kind == NO_SECONDS)
        return newSV(0);
    IV whole = (IV)seconds->fraction; /* which has been checked to be far below the largest */
    return seconds->fraction == (NV)whole ? newSViv(whole) : newSVnv(seconds->fraction);
}

/* What the head does not tell. */
static void put_rest(pTHX_ my_cxt_t *cxt, Loop *loop, HV *env, const Request *request, SV *input) {
    for (SSize_t i = 0; i + 1 <= AvFILLp(loop->same); i += 2) {
        SV *key = element(loop->same, i), *value = newSVsv(element(loop->same, i + 1));
        if (!hv_store_ent(env, key, value, SvSHARED_HASH(key)))
            SvREFCNT_dec(value);
    }
    put_root(aTHX_ cxt, loop, env);
    STRLEN size = request->body.size;
    if (size > 0 || hv_exists_ent(env, cxt->keys[K_LENGTH], SvSHARED_HASH(cxt->keys[K_LENGTH])))
        put(aTHX_ cxt, env, K_LENGTH, newSVuv(size));
    put(aTHX_ cxt, env, K_INPUT, input);
    put(aTHX_ cxt, env, K_NONBLOCKING, newSVsv(is_event_loop_loaded(aTHX) ? &PL_sv_yes : &PL_sv_no));
    put(aTHX_ cxt, env, K_CLEANUP, newRV_noinc((SV *)newAV()));
    if (request->deadline.kind != NO_SECONDS)
        put(aTHX_ cxt, env, K_DEADLINE, seconds_of(aTHX_ &request->deadline));
    put(aTHX_ cxt, env, K_ON_CANCEL, newSVsv(loop->on_cancel));
    put(aTHX_ cxt, env, K_PUBLISH, newSVsv(loop->publish));
}

/* What the application returns; NULL if it died. */
static SV *response_of(pTHX_ Loop *loop, SV *env) {
    dSP;
    PUSHSTACKi(PERLSI_MAGIC); /* `last` and `next` in the application end there */
    PUSHMARK(SP);
    XPUSHs(env);
    PUTBACK;
    call_sv(loop->code, G_SCALAR | G_EVAL);
    SPAGAIN;
    SV *response = POPs;
    PUTBACK;
    POPSTACK;
    return SvROK(ERRSV) || SvTRUE(ERRSV) ? NULL : response;
}

static AV *array_with(pTHX_ SV *first, SV *second, SV *third) {
    AV *array = newAV();
    av_extend(array, 4);
    av_push(array, first);
    av_push(array, second);
    av_push(array, third);
    return array;
}

/* The event that Parkade::Session makes of a request. */
static SV *opened(pTHX_ const Request *request) {
    AV *parameters = newAV();
    Reader reader = request->parameters;
    Text parameter;
    for (STRLEN i = 0; i < request->parameter_count && read_text(&reader, &parameter); i++)
        av_push(parameters, newSVpvn(parameter.bytes, parameter.size));
    SV *route = request->has_route ? newSVuv(request->route) : newSV(0);
    AV *told = array_with(aTHX_ route, newRV_noinc((SV *)parameters), seconds_of(aTHX_ &request->deadline));
    av_push(told, newSVpvn(request->body.bytes, request->body.size));
    av_push(told, newSVpvn((const char *)request->head.at, (STRLEN)(request->head.end - request->head.at)));
    AV *event = array_with(aTHX_ newSVpvs_share("opened"), newSVuv(request->stream), newRV_noinc((SV *)told));
    return newRV_noinc((SV *)event);
}

static void put_stream(pTHX_ HV *streams, U32 stream) {
    char digits[12];
    I32 size = (I32)my_snprintf(digits, sizeof digits, "%u", (unsigned)stream);
    SV *state = newSVpvs_share("held");
    if (!hv_store(streams, digits, size, state, 0))
        SvREFCNT_dec(state);
}

/* Turns the usual requests that come next into events of a session that is ready; returns where they end. */
static STRLEN read_requests(pTHX_ HV *session, const U8 *begin, STRLEN size, STRLEN at, AV *events) {
    SV **streams = hv_fetchs(session, "streams", 0), **highest = hv_fetchs(session, "highest", 0);
    Request request;
    if (streams == NULL || highest == NULL || !SvROK(*streams) || SvTYPE(SvRV(*streams)) != SVt_PVHV)
        return at;
    while (at < size && read_request(begin + at, size - at, &request) && request.stream > SvUV(*highest) &&
           request.stream < BRANCH_FIRST) {
        sv_setuv(*highest, request.stream);
        put_stream(aTHX_ (HV *)SvRV(*streams), request.stream);
        av_push(events, opened(aTHX_ &request));
        at = (STRLEN)(request.head.end - begin);
    }
    return at;
}

static void forget(pTHX_ Loop *loop, U32 stream) {
    char digits[12];
    I32 size = (I32)my_snprintf(digits, sizeof digits, "%u", (unsigned)stream);
    (void)hv_delete(loop->streams, digits, size, G_DISCARD);
}

/* What is behind the response: handlers of the application. */
static int has_more_to_do(pTHX_ my_cxt_t *cxt, HV *env) {
    if (hv_exists_ent(env, cxt->keys[K_COMMIT], SvSHARED_HASH(cxt->keys[K_COMMIT])))
        return 1;
    HE *entry = hv_fetch_ent(env, cxt->keys[K_CLEANUP], 0, SvSHARED_HASH(cxt->keys[K_CLEANUP]));
    if (entry == NULL)
        return 0;
    AV *handlers = array_of(HeVAL(entry));
    return handlers == NULL || AvFILLp(handlers) >= 0;
}

/* Answers with a plain response; 0, without having done anything, if it is not plain, or no plain answer is due. */
static int answer(pTHX_ my_cxt_t *cxt, Loop *loop, U32 stream, HV *env, SV *response) {
    if (HvUSEDKEYS(loop->waits) > 0 || HvUSEDKEYS(loop->cancelled) > 0 || SvROK(element(loop->ticket, 1)) ||
        loop->pid != PerlProc_getpid() || !add_response(&loop->out, stream, response))
        return 0;
    forget(aTHX_ loop, stream);
    SSize_t written = PerlLIO_write(loop->writer, loop->out.bytes, loop->out.size);
    if (written < (SSize_t)loop->out.size) {
        STRLEN begin = written > 0 ? (STRLEN)written : 0;
        SV *rest = sv_2mortal(newSVpvn((char *)loop->out.bytes + begin, loop->out.size - begin));
        call_perl(aTHX_ loop->link, "write", rest, NULL, NULL, NULL);
    }
    clear(&loop->out);
    if (has_more_to_do(aTHX_ cxt, env))
        call_perl(aTHX_ loop->application, "after", loop->link, sv_2mortal(newRV_inc((SV *)env)), NULL, NULL);
    return 1;
}

/* Serves the first request in the buffer; 0, without having done anything, if it is unusual. */
static int serve_one(pTHX_ my_cxt_t *cxt, Loop *loop) {
    ENTER;
    SAVETMPS;
    take_ticket(aTHX_ loop);
    /* From here to the call, no Perl runs that could change the buffer. */
    STRLEN size;
    const U8 *begin = (const U8 *)SvPV_const(loop->rest, size);
    Request request;
    HV *env = (HV *)sv_2mortal((SV *)newHV()); /* also if the application sets $_[0] */
    SV *input = NULL;
    hv_ksplit(env, 64);
    if (read_request(begin, size, &request) && request.parameter_count == 0 && request.stream > SvUV(loop->highest) && request.stream < BRANCH_FIRST &&
        put_head(aTHX_ cxt, env, &request.head))
        input = input_of(aTHX_ loop, request.body);
    if (input == NULL) {
        FREETMPS;
        LEAVE;
        return 0;
    }
    put_rest(aTHX_ cxt, loop, env, &request, input);
    sv_chop(loop->rest, (const char *)request.head.end);
    sv_setuv(element(loop->ticket, 0), request.stream);
    sv_setuv(loop->highest, request.stream);
    sv_setuv(loop->running, request.stream);
    put_stream(aTHX_ loop->streams, request.stream);
    loop->is_guarded = 1;
    SAVEDESTRUCTOR_X(abandoned, loop);
    SV *response = response_of(aTHX_ loop, sv_2mortal(newRV_inc((SV *)env)));
    loop->is_guarded = 0;
    int is_for_perl = response == NULL || !answer(aTHX_ cxt, loop, request.stream, env, response);
    if (is_for_perl) {
        SV *ticket = sv_2mortal(newRV_inc((SV *)loop->ticket));
        SV *error = response == NULL ? sv_2mortal(newSVsv(ERRSV)) : NULL;
        SV *reference = sv_2mortal(newRV_inc((SV *)env));
        call_perl(aTHX_ loop->link, "take_over", ticket, reference, error ? &PL_sv_undef : response, error);
    }
    FREETMPS; /* destructors of the application run on behalf of the request */
    LEAVE;
    if (is_for_perl)
        call_perl(aTHX_ loop->link, "settle", NULL, NULL, NULL, NULL);
    sv_setiv(loop->running, 0);
    forget_last_read(aTHX_ &loop->empty);
    return 1;
}

/* Reads once; 0 if the core has gone. */
static int receive(pTHX_ Loop *loop) {
    while (1) {
        PERL_ASYNC_CHECK(); /* a handler may change anything, so it runs before the buffer is looked at */
        STRLEN size;
        (void)SvPV_force(loop->rest, size); /* not shared with another string */
        if (size == 0) {
            if (SvOOK(loop->rest))
                sv_backoff(loop->rest);
            if (SvLEN(loop->rest) > BUFFER_KEPT)
                SvPV_renew(loop->rest, loop->receive_size + 1);
        }
        char *begin = SvGROW(loop->rest, size + loop->receive_size + 1);
        SSize_t got = PerlLIO_read(loop->reader, begin + size, loop->receive_size);
        if (got > 0) {
            SvCUR_set(loop->rest, size + (STRLEN)got);
            begin[size + (STRLEN)got] = '\0';
            (void)SvPOK_only(loop->rest);
            return 1;
        }
        if (got == 0 || errno != EINTR)
            return 0;
    }
}

/* Whether this is a child that the application has forked, and that has returned from its code: it has no link. */
static int is_child(Loop *loop) {
    return loop->pid != PerlProc_getpid();
}

/* Serves usual requests. Returns 0 if the core has gone, and 1 if Perl has to look. */
static int serve(pTHX_ my_cxt_t *cxt, Loop *loop) {
    do {
        if (is_child(loop))
            return 1;
        if (!receive(aTHX_ loop))
            return 0;
        STRLEN size;
        const U8 *begin = (const U8 *)SvPV_const(loop->rest, size);
        int count = usual_frames(begin, size);
        if (count < 0 || count_of(aTHX_ loop->collecting) > 0)
            return 1;
        while (count-- > 0)
            if (is_child(loop) || !serve_one(aTHX_ cxt, loop) || SvTRUE(loop->leaving) || count_of(aTHX_ loop->kept) > 0)
                return 1;
    } while (!is_event_loop_loaded(aTHX)); /* which Perl runs before each read */
    return 1;
}

/* A member of a hash that Perl tells; it stays valid. */
static SV *member(pTHX_ HV *members, const char *name) {
    SV **found = hv_fetch(members, name, (I32)strlen(name), 0);
    if (found == NULL)
        croak("Parkade::Compiled: there is no %s", name);
    return SvREFCNT_inc(*found);
}

static SV *referred(pTHX_ HV *members, const char *name, svtype type) {
    SV *reference = sv_2mortal(member(aTHX_ members, name));
    if (!SvROK(reference) || SvTYPE(SvRV(reference)) != type)
        croak("Parkade::Compiled: %s is of another type", name);
    return SvREFCNT_inc(SvRV(reference));
}

MODULE = Parkade    PACKAGE = Parkade::Compiled

PROTOTYPES: DISABLE

BOOT:
{
    MY_CXT_INIT;
    begin_context(aTHX_ &MY_CXT);
}

#ifdef USE_ITHREADS

void
CLONE(...)
  CODE:
    PERL_UNUSED_VAR(items);
    MY_CXT_CLONE;
    begin_context(aTHX_ &MY_CXT);

#endif

SV *
environment(written)
    SV *written
  PREINIT:
    dMY_CXT;
    STRLEN size;
    const U8 *begin;
  CODE:
    begin = (const U8 *)SvPV_const(written, size);
    {
        Reader reader = {begin, begin + size};
        HV *env = newHV();
        RETVAL = newRV_noinc((SV *)env);
        hv_ksplit(env, 64);
        if (SvUTF8(written) || !put_head(aTHX_ &MY_CXT, env, &reader)) {
            SvREFCNT_dec(RETVAL);
            RETVAL = &PL_sv_undef;
        }
    }
  OUTPUT:
    RETVAL

SV *
fields(written)
    SV *written
  CODE:
    RETVAL = &PL_sv_undef;
    if (is_plain(written) && SvPOK(written) && !SvUTF8(written)) {
        const U8 *begin = (const U8 *)SvPVX_const(written);
        Reader reader = {begin, begin + SvCUR(written)};
        HV *fields = fields_of(aTHX_ &reader);
        if (fields != NULL)
            RETVAL = newRV_noinc((SV *)fields);
    }
  OUTPUT:
    RETVAL

SV *
encode(value)
    SV *value
  PREINIT:
    dMY_CXT;
  CODE:
    MY_CXT.encoded.size = 0;
    RETVAL = add_value(aTHX_ &MY_CXT.encoded, value, 0)
        ? newSVpvn((char *)MY_CXT.encoded.bytes, MY_CXT.encoded.size)
        : &PL_sv_undef;
    clear(&MY_CXT.encoded);
  OUTPUT:
    RETVAL

UV
requests(session, data, at, events)
    SV *session
    SV *data
    UV at
    SV *events
  CODE:
    RETVAL = at;
    if (SvROK(session) && SvTYPE(SvRV(session)) == SVt_PVHV && is_plain(data) && SvPOK(data) && !SvUTF8(data) &&
        array_of(events) != NULL)
        RETVAL = read_requests(aTHX_ (HV *)SvRV(session), (const U8 *)SvPVX_const(data), SvCUR(data), at, array_of(events));
  OUTPUT:
    RETVAL

SV *
_loop(class, told)
    const char *class
    SV *told
  PREINIT:
    Loop *loop;
    HV *members, *link, *session;
  CODE:
    if (!SvROK(told) || SvTYPE(SvRV(told)) != SVt_PVHV)
        croak("Parkade::Compiled: members are a hash");
    members = (HV *)SvRV(told);
    Newxz(loop, 1, Loop);
    RETVAL = sv_setref_pv(newSV(0), class, loop);
    sv_2mortal(RETVAL);
    link = (HV *)sv_2mortal(referred(aTHX_ members, "link", SVt_PVHV));
    session = (HV *)sv_2mortal(referred(aTHX_ link, "session", SVt_PVHV));
    loop->link = newSVsv(*hv_fetchs(members, "link", 0));
    loop->application = newSVsv(sv_2mortal(member(aTHX_ members, "application")));
    loop->code = newSVsv(sv_2mortal(member(aTHX_ members, "code")));
    loop->make_ticket = newSVsv(sv_2mortal(member(aTHX_ members, "make_ticket")));
    loop->root = newSVsv(sv_2mortal(member(aTHX_ members, "root")));
    loop->running = member(aTHX_ link, "running");
    loop->leaving = member(aTHX_ link, "leaving");
    loop->kept = member(aTHX_ link, "kept");
    loop->rest = member(aTHX_ session, "rest");
    loop->highest = member(aTHX_ session, "highest");
    loop->collecting = member(aTHX_ session, "collecting");
    loop->streams = (HV *)referred(aTHX_ session, "streams", SVt_PVHV);
    loop->cancelled = (HV *)referred(aTHX_ session, "cancelled", SVt_PVHV);
    loop->waits = (HV *)referred(aTHX_ members, "waits", SVt_PVHV);
    loop->reader = (int)SvIV(sv_2mortal(member(aTHX_ members, "reader")));
    loop->writer = (int)SvIV(sv_2mortal(member(aTHX_ members, "writer")));
    loop->receive_size = (STRLEN)SvUV(sv_2mortal(member(aTHX_ members, "receive_size")));
    loop->pid = (Pid_t)SvIV(sv_2mortal(member(aTHX_ link, "pid")));
    loop->same = newAV();
    {
        AV *same = (AV *)sv_2mortal(referred(aTHX_ members, "same", SVt_PVAV));
        for (SSize_t i = 0; i + 1 <= av_len(same); i += 2) {
            SV **key = av_fetch(same, i, 0), **value = av_fetch(same, i + 1, 0);
            STRLEN size;
            const char *name;
            if (key == NULL || value == NULL)
                croak("Parkade::Compiled: what is the same is keys and values");
            name = SvPV(*key, size);
            av_push(loop->same, newSVpvn_share(name, (I32)size, 0));
            av_push(loop->same, newSVsv(*value));
        }
    }
    if (!make_empty(aTHX_ &loop->empty)) /* loads PerlIO::scalar */
        croak("Parkade::Compiled: no handle");
    SvREFCNT_inc(RETVAL);
  OUTPUT:
    RETVAL

bool
serve(self)
    SV *self
  PREINIT:
    dMY_CXT;
  CODE:
    if (!sv_isobject(self) || !sv_derived_from(self, "Parkade::Compiled"))
        croak("Parkade::Compiled: no loop");
    RETVAL = serve(aTHX_ &MY_CXT, INT2PTR(Loop *, SvIV(SvRV(self))));
  OUTPUT:
    RETVAL

void
DESTROY(self)
    SV *self
  PREINIT:
    Loop *loop;
  CODE:
    loop = INT2PTR(Loop *, SvIV(SvRV(self)));
    SvREFCNT_dec(loop->link);
    SvREFCNT_dec(loop->application);
    SvREFCNT_dec(loop->code);
    SvREFCNT_dec(loop->rest);
    SvREFCNT_dec(loop->highest);
    SvREFCNT_dec(loop->running);
    SvREFCNT_dec(loop->leaving);
    SvREFCNT_dec(loop->kept);
    SvREFCNT_dec(loop->collecting);
    SvREFCNT_dec((SV *)loop->streams);
    SvREFCNT_dec((SV *)loop->cancelled);
    SvREFCNT_dec((SV *)loop->waits);
    SvREFCNT_dec((SV *)loop->same);
    SvREFCNT_dec(loop->root);
    SvREFCNT_dec(loop->make_ticket);
    SvREFCNT_dec(loop->on_cancel);
    SvREFCNT_dec(loop->publish);
    SvREFCNT_dec((SV *)loop->ticket);
    free_empty(aTHX_ &loop->empty);
    Safefree(loop->out.bytes);
    Safefree(loop);
