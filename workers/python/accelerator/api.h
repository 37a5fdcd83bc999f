/* Python's API: the limited one of 3.10, so that one file serves every CPython. */

#ifndef API_H
#define API_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#endif
