/* The compiled twins of `RowBuffer` and `Timer` of rows.py, which define them: a measurement becomes
   five integers in a buffer, within 20 to 40 ns. Whatever is not plain (a tag, a value out of range,
   a recorder that is closed or takes response times) goes to the recorder's own Python method, which
   words the error. Python's limited API: one binary serves every version from 3.11 on; the lock of
   the interpreter, which nothing here releases, makes an append atomic. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

enum { COLUMNS = 5, ROWS = 8192, BYTES = 8 * COLUMNS };

typedef struct {
    PyObject_HEAD
    PyObject *clock, *outcome_of, *timer;
    PyObject *full, *current; /* a list of bytes, and the bytes that are being written */
    int64_t *at, *end, tag; /* tag: of plain service times; -1: hand all to Python */
    int system;             /* whether `clock` is the system's */
} Rows;

typedef struct {
    PyObject_HEAD
    Rows *rows;
    int64_t start, due, tag;
} Timer;

static int now(Rows *self, int64_t *result)
{
#ifdef __linux__
    if (self->system) { /* what time.perf_counter_ns reads there */
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        *result = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        return 0;
    }
#endif
    PyObject *reading = self->clock ? PyObject_CallNoArgs(self->clock) : PyLong_FromLong(0);
    if (!reading) return -1;
    *result = PyLong_AsLongLong(reading);
    Py_DECREF(reading);
    return *result == -1 && PyErr_Occurred() ? -1 : 0;
}

static int begin_chunk(Rows *self)
{
    PyObject *chunk = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)ROWS * BYTES);
    if (!chunk) return -1;
    self->current = chunk;
    self->at = (int64_t *)PyBytes_AsString(chunk);
    self->end = self->at + (Py_ssize_t)ROWS * COLUMNS;
    return 0;
}

static int append(Rows *self, int64_t start, int64_t end, int64_t due, int64_t outcome, int64_t tag)
{
    int64_t *row = self->at;
    row[0] = start, row[1] = end, row[2] = due, row[3] = outcome, row[4] = tag;
    if ((self->at += COLUMNS) < self->end) return 0;
    PyObject *chunk = self->current;
    if (begin_chunk(self) < 0) { /* out of memory: the last row is given up */
        self->at -= COLUMNS;
        return -1;
    }
    int failed = PyList_Append(self->full, chunk);
    Py_DECREF(chunk);
    if (failed) return -1;
    PyObject *on_full = PyObject_GetAttrString((PyObject *)self, "_on_full");
    PyObject *done = on_full ? PyObject_CallNoArgs(on_full) : NULL;
    Py_XDECREF(on_full);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Call the recorder's Python method with what this one was called with. */
static PyObject *hand_over(Rows *self, const char *name, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *names)
{
    PyObject *result = NULL, *named = NULL, *given = PyTuple_New(nargs);
    PyObject *method = given ? PyObject_GetAttrString((PyObject *)self, name) : NULL;
    if (!method) goto end;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(given, i, args[i]);
    }
    if (names && !(named = PyDict_New())) goto end;
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++)
        if (PyDict_SetItem(named, PyTuple_GetItem(names, i), args[nargs + i]) < 0) goto end;
    result = PyObject_Call(method, given, named);
end:
    Py_XDECREF(given);
    Py_XDECREF(named);
    Py_XDECREF(method);
    return result;
}

static PyObject *new_timer(PyTypeObject *type, Rows *rows, int64_t due, int64_t tag)
{
    Timer *timer = (Timer *)PyType_GenericAlloc(type, 0);
    if (!timer) return NULL;
    Py_INCREF((PyObject *)rows);
    timer->rows = rows, timer->due = due, timer->tag = tag;
    return (PyObject *)timer;
}

static PyObject *rows_record(Rows *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    int64_t value = -1, end;
    if (nargs == 1 && !names && self->tag >= 0) {
        if (PyLong_CheckExact(args[0])) {
            value = PyLong_AsLongLong(args[0]);
            if (value == -1) PyErr_Clear();
        } else if (PyFloat_CheckExact(args[0])) {
            double given = PyFloat_AsDouble(args[0]);
            if (given >= 0 && given < 4e18) value = (int64_t)given;
        }
    }
    if (value < 0 || value >> 62) return hand_over(self, "_record", args, nargs, names);
    if (now(self, &end) < 0 || append(self, end - value, end, -1, 0, self->tag) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *rows_measure(Rows *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (nargs || names || self->tag < 0) return hand_over(self, "_measure", args, nargs, names);
    return new_timer((PyTypeObject *)self->timer, self, -1, self->tag);
}

static PyObject *rows_put(Rows *self, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t row[COLUMNS];
    if (nargs != COLUMNS) return PyErr_Format(PyExc_TypeError, "a row has %d integers", COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        row[i] = PyLong_AsLongLong(args[i]);
        if (row[i] == -1 && PyErr_Occurred()) return NULL;
    }
    if (append(self, row[0], row[1], row[2], row[3], row[4]) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *rows_accept(Rows *self, PyObject *tag)
{
    int64_t given = PyLong_AsLongLong(tag);
    if (given == -1 && PyErr_Occurred()) return NULL;
    self->tag = given;
    Py_RETURN_NONE;
}

static PyObject *rows_take(Rows *self, PyObject *Py_UNUSED(none))
{
    const char *begin = PyBytes_AsString(self->current);
    PyObject *rest = PyBytes_FromStringAndSize(begin, (const char *)self->at - begin);
    PyObject *fresh = PyList_New(0), *taken = self->full;
    if (!rest || !fresh || PyList_Append(taken, rest) < 0) {
        Py_XDECREF(rest);
        Py_XDECREF(fresh);
        return NULL;
    }
    Py_DECREF(rest);
    self->full = fresh;
    self->at = (int64_t *)begin;
    return taken;
}

static PyObject *rows_waiting(Rows *self, PyObject *Py_UNUSED(none))
{
    Py_ssize_t rows = ROWS - (self->end - self->at) / COLUMNS;
    return PyLong_FromSsize_t(PyList_Size(self->full) * ROWS + rows);
}

static int rows_clear(Rows *self)
{
    self->tag = -1;
    Py_CLEAR(self->clock);
    Py_CLEAR(self->outcome_of);
    Py_CLEAR(self->timer);
    return 0;
}

static PyObject *rows_setup(Rows *self, PyObject *args)
{
    PyObject *clock, *outcome_of, *timer, *module, *system;
    if (!PyArg_ParseTuple(args, "OOO", &clock, &outcome_of, &timer)) return NULL;
    if (!PyType_Check(timer)) return PyErr_Format(PyExc_TypeError, "a type is expected");
    if (!(module = PyImport_ImportModule("time"))) return NULL;
    system = PyObject_GetAttrString(module, "perf_counter_ns");
    Py_DECREF(module);
    if (!system) return NULL;
    self->system = clock == system;
    Py_DECREF(system);
    rows_clear(self);
    Py_INCREF(self->clock = clock);
    Py_INCREF(self->outcome_of = outcome_of);
    Py_INCREF(self->timer = timer);
    Py_RETURN_NONE;
}

static PyObject *rows_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(names))
{
    Rows *self = (Rows *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    self->tag = -1;
    if (!(self->full = PyList_New(0)) || begin_chunk(self) < 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

static int rows_traverse(Rows *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->clock);
    Py_VISIT(self->outcome_of);
    Py_VISIT(self->timer);
    return 0;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static void rows_dealloc(Rows *self)
{
    PyObject_GC_UnTrack(self);
    rows_clear(self);
    Py_CLEAR(self->full);
    Py_CLEAR(self->current);
    free_object((PyObject *)self);
}

/* Timer(recorder, due, tag) */
static PyObject *timer_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *rows;
    long long due, tag;
    if (!PyArg_ParseTuple(args, "OLL", &rows, &due, &tag)) return NULL;
    PyTypeObject *base = Py_TYPE(rows);
    while (base && PyType_GetSlot(base, Py_tp_dealloc) != (void *)rows_dealloc)
        base = PyType_GetSlot(base, Py_tp_base);
    if (!base) return PyErr_Format(PyExc_TypeError, "a Recorder is expected");
    return new_timer(type, (Rows *)rows, due, tag);
}

static PyObject *timer_enter(Timer *self, PyObject *Py_UNUSED(none))
{
    if (now(self->rows, &self->start) < 0) return NULL;
    Py_INCREF((PyObject *)self);
    return (PyObject *)self;
}

static PyObject *timer_exit(Timer *self, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t end, outcome = 0;
    if (now(self->rows, &end) < 0) return NULL;
    if (nargs && args[0] != Py_None) {
        PyObject *code = self->rows->outcome_of
            ? PyObject_CallFunctionObjArgs(self->rows->outcome_of, args[0], NULL)
            : PyLong_FromLong(0);
        if (!code) return NULL;
        outcome = PyLong_AsLongLong(code);
        Py_DECREF(code);
        if (outcome == -1 && PyErr_Occurred()) return NULL;
    }
    if (append(self->rows, self->start, end, self->due, outcome, self->tag) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *timer_again(Timer *self, PyObject *Py_UNUSED(none))
{
    return new_timer(Py_TYPE((PyObject *)self), self->rows, -1, self->tag);
}

static PyObject *timer_due(Timer *self, void *Py_UNUSED(closure))
{
    if (self->due == -1) Py_RETURN_NONE;
    return PyLong_FromLongLong(self->due);
}

static int timer_traverse(Timer *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->rows);
    return 0;
}

static void timer_dealloc(Timer *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->rows);
    free_object((PyObject *)self);
}

#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef rows_methods[] = {
    {"record", METHOD(rows_record), METH_FASTCALL | METH_KEYWORDS,
     "record(nanoseconds, *, tag=None)\n--\n\nCount a service time that has just ended."},
    {"measure", METHOD(rows_measure), METH_FASTCALL | METH_KEYWORDS,
     "measure(*, tag=None, intended=None)\n--\n\nReturn a measurement, to be entered."},
    {"_setup", METHOD(rows_setup), METH_VARARGS, NULL},
    {"_put", METHOD(rows_put), METH_FASTCALL, NULL},
    {"_accept", METHOD(rows_accept), METH_O, NULL},
    {"_take", METHOD(rows_take), METH_NOARGS, NULL},
    {"_waiting", METHOD(rows_waiting), METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyType_Slot rows_slots[] = {{Py_tp_new, (void *)rows_new},
                                   {Py_tp_dealloc, (void *)rows_dealloc},
                                   {Py_tp_traverse, (void *)rows_traverse},
                                   {Py_tp_clear, (void *)rows_clear},
                                   {Py_tp_methods, (void *)rows_methods},
                                   {0, NULL}};
static PyType_Spec rows_spec = {"latencykit.record._rows.RowBuffer", sizeof(Rows), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                rows_slots};

static PyMethodDef timer_methods[] = {{"__enter__", METHOD(timer_enter), METH_NOARGS, NULL},
                                      {"again", METHOD(timer_again), METH_NOARGS, NULL},
                                      {"__exit__", METHOD(timer_exit), METH_FASTCALL, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyGetSetDef timer_getset[] = {{"due", (getter)timer_due, NULL, NULL, NULL},
                                     {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot timer_slots[] = {{Py_tp_new, (void *)timer_new},
                                    {Py_tp_dealloc, (void *)timer_dealloc},
                                    {Py_tp_traverse, (void *)timer_traverse},
                                    {Py_tp_methods, (void *)timer_methods},
                                    {Py_tp_getset, (void *)timer_getset},
                                    {0, NULL}};
static PyType_Spec timer_spec = {"latencykit.record._rows.Timer", sizeof(Timer), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                 timer_slots};

static int add_types(PyObject *module)
{
    PyObject *rows = PyType_FromSpec(&rows_spec), *timer = PyType_FromSpec(&timer_spec);
    int failed = !rows || !timer || PyModule_AddType(module, (PyTypeObject *)rows) < 0 ||
                 PyModule_AddType(module, (PyTypeObject *)timer) < 0 ||
                 PyModule_AddIntConstant(module, "VERSION", 1) < 0;
    Py_XDECREF(rows);
    Py_XDECREF(timer);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)add_types}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_rows", NULL, 0, NULL, module_slots, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__rows(void) { return PyModuleDef_Init(&definition); }
