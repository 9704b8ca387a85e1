// SPDX-License-Identifier: Apache-2.0
// A result of CPython's C API, as an object that is released.
#pragma once

#include <nanobind/nanobind.h>

namespace warpcipher::python {

// Null stands for an exception that is set, and is thrown.
inline nanobind::object checked(PyObject* made) {
  if (made == nullptr) throw nanobind::python_error();
  return nanobind::steal(made);
}

}  // namespace warpcipher::python
