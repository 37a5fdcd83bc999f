/* What takes the messages of a response of ASGI: the base of `AsgiResponse`. */

#ifndef SENDER_H
#define SENDER_H

#include "response.h"
#include "state.h"

/* How far a response is, as asgi_sender.py has it. */
enum { NEW, STARTED, OVER };

/* What is awaited and is over already: a coroutine in all but its type, so that tasks accept it. */

static PyObject *done_send(PyObject *self, PyObject *value) {
    (void)self, (void)value;
    PyErr_SetNone(PyExc_StopIteration);
    return NULL;
}

static PyObject *done_throw(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *type, *value = NULL, *traceback = NULL;
    if (!PyArg_ParseTuple(arguments, "O|OO", &type, &value, &traceback))
        return NULL;
    if (PyExceptionInstance_Check(type))
        PyErr_SetObject((PyObject *)Py_TYPE(type), type);
    else
        PyErr_SetObject(type, value == NULL ? Py_None : value);
    return NULL;
}

static PyObject *done_close(PyObject *self, PyObject *nothing) {
    (void)self, (void)nothing;
    return Py_NewRef(Py_None);
}

static PyObject *done_next(PyObject *self) {
    (void)self;
    return NULL; /* the end, with None */
}

static PyMethodDef done_methods[] = {
    {"send", done_send, METH_O, NULL},
    {"throw", done_throw, METH_VARARGS, NULL},
    {"close", done_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot done_slots[] = {
    {Py_am_await, PyObject_SelfIter},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, done_next},
    {Py_tp_methods, done_methods},
    {0, NULL},
};

static PyType_Spec done_spec = {
    .name = "parkade._accelerator.Done",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = done_slots,
};

/* The sender of a response of ASGI: the base of `AsgiResponse`, whose members it has, and its ordinary messages. */

static State *the_state; /* that of the only interpreter: subclasses of a type do not lead to its module */

typedef struct {
    PyObject_HEAD
    PyObject *link, *exchange, *request, *parking, *parked, *head, *trailers, *wait;
    int phase;
} Sender;

#define EACH_REFERENCE(does) \
    does(link) does(exchange) does(request) does(parking) does(parked) does(head) does(trailers) does(wait)

static PyObject *sender_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *link, *exchange, *request, *parking, *parked;
    if (names != NULL && PyDict_Size(names) != 0) {
        PyErr_SetString(PyExc_TypeError, "the arguments have no names");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "OOOOO!", &link, &exchange, &request, &parking, &PyDict_Type, &parked))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Sender *sender = (Sender *)allocate(type, 0);
    if (sender == NULL)
        return NULL;
    sender->link = Py_NewRef(link);
    sender->exchange = Py_NewRef(exchange);
    sender->request = Py_NewRef(request);
    sender->parking = Py_NewRef(parking);
    sender->parked = Py_NewRef(parked);
    sender->head = Py_NewRef(Py_None);
    sender->trailers = Py_NewRef(Py_None);
    sender->wait = Py_NewRef(Py_None);
    sender->phase = NEW;
    return (PyObject *)sender;
}

static int sender_traverse(PyObject *self, visitproc visit, void *arg) {
    Sender *sender = (Sender *)self;
    Py_VISIT(Py_TYPE(self));
#define VISIT(name) Py_VISIT(sender->name);
    EACH_REFERENCE(VISIT)
    return 0;
}

static int sender_clear(PyObject *self) {
    Sender *sender = (Sender *)self;
#define CLEAR(name) Py_CLEAR(sender->name);
    EACH_REFERENCE(CLEAR)
    return 0;
}

static void sender_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    sender_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Whether an attribute is None; -1 with an exception. */
static int has_none(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL)
        return -1;
    Py_DECREF(value);
    return value == Py_None;
}

/* A value of a message that is false by default: 1 if it is there and not False; -1 with an exception. */
static int is_told(PyObject *message, PyObject *key) {
    PyObject *value = PyDict_GetItemWithError(message, key);
    if (value == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return value != Py_False;
}

/* `http.response.start`. Returns 1, 0 if it is unusual, or -1 with an exception. */
static int take_start(Sender *sender, PyObject *message) {
    int result = is_told(message, the_state->trailers_key);
    if (result != 0 || PyDict_Size(sender->parked) != 0)
        return result < 0 ? -1 : 0;
    PyObject *head = make_head(the_state, message);
    if (head == NULL || head == Py_None) {
        Py_XDECREF(head);
        return head == NULL ? -1 : 0;
    }
    PyObject *before = sender->head;
    sender->head = head;
    sender->phase = STARTED;
    Py_DECREF(before);
    return 1;
}

/* The only `http.response.body`. */
static int take_body(Sender *sender, PyObject *message) {
    State *state = the_state;
    PyObject *body = PyDict_GetItemWithError(message, state->body);
    if (body == NULL || sender->trailers != Py_None)
        return PyErr_Occurred() ? -1 : 0;
    int result = is_told(message, state->more_body);
    if (result != 0)
        return result < 0 ? -1 : 0;
    if ((result = has_none(sender->exchange, state->waiters)) != 1)
        return result;
    PyObject *payload;
    if ((result = make_response(sender->head, body, &payload)) != 1)
        return result;
    sender->phase = OVER;
    PyObject *stream = PyObject_GetAttr(sender->exchange, state->stream), *sent = NULL, *completed = NULL;
    if (stream != NULL)
        sent = PyObject_CallMethodObjArgs(sender->link, state->respond, stream, payload, NULL);
    if (sent != NULL)
        completed = PyObject_CallMethodObjArgs(sender->request, state->complete, NULL);
    result = completed == NULL ? -1 : 1;
    Py_XDECREF(stream);
    Py_XDECREF(sent);
    Py_XDECREF(completed);
    Py_DECREF(payload);
    return result;
}

static PyObject *sender_send(PyObject *self, PyObject *message) {
    Sender *sender = (Sender *)self;
    int result = 0;
    if (PyDict_CheckExact(message) && (sender->phase == NEW || sender->phase == STARTED) &&
        (result = has_none(sender->request, the_state->end)) == 1) {
        PyObject *kind = PyDict_GetItemWithError(message, the_state->type_key);
        if (kind == NULL || !PyUnicode_CheckExact(kind))
            result = PyErr_Occurred() ? -1 : 0;
        else if (sender->phase == NEW)
            result = PyUnicode_CompareWithASCIIString(kind, "http.response.start") ? 0 : take_start(sender, message);
        else
            result = PyUnicode_CompareWithASCIIString(kind, "http.response.body") ? 0 : take_body(sender, message);
    }
    if (result < 0)
        return NULL;
    return result == 1 ? Py_NewRef(the_state->done)
                       : PyObject_CallMethodObjArgs(self, the_state->send_name, message, NULL);
}

static PyMethodDef sender_methods[] = {
    {"send", sender_send, METH_O, "See the specification. Returns what is to be awaited."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef sender_members[] = {
    {"_link", T_OBJECT_EX, offsetof(Sender, link), READONLY, NULL},
    {"_exchange", T_OBJECT_EX, offsetof(Sender, exchange), READONLY, NULL},
    {"_request", T_OBJECT_EX, offsetof(Sender, request), READONLY, NULL},
    {"_parking", T_OBJECT_EX, offsetof(Sender, parking), READONLY, NULL},
    {"_head", T_OBJECT_EX, offsetof(Sender, head), 0, NULL},
    {"_trailers", T_OBJECT_EX, offsetof(Sender, trailers), 0, NULL},
    {"_wait", T_OBJECT_EX, offsetof(Sender, wait), 0, NULL},
    {"_phase", T_INT, offsetof(Sender, phase), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot sender_slots[] = {
    {Py_tp_new, sender_new},
    {Py_tp_dealloc, sender_free},
    {Py_tp_traverse, sender_traverse},
    {Py_tp_clear, sender_clear},
    {Py_tp_methods, sender_methods},
    {Py_tp_members, sender_members},
    {0, NULL},
};

static PyType_Spec sender_spec = {
    .name = "parkade._accelerator.AsgiSender",
    .basicsize = sizeof(Sender),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = sender_slots,
};

#endif
