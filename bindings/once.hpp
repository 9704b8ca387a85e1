// SPDX-License-Identifier: Apache-2.0
// Extension modules whose content is made once in a process. Static variables, exception translators and nanobind's
// table of types belong to the process: making them again breaks those in use. So a repeated import, after the module
// was removed from sys.modules, gets a new module object with the existing content. An import that cannot work is
// refused before anything changes.
#pragma once

#include <nanobind/nanobind.h>

namespace warpcipher::python {

// Fills a module that the interpreter has just made. `make`, called once, is the PyInit function of the content.
// Returns 0; or -1 and sets ImportError: in a subinterpreter, and if the interpreter runs without its lock.
int fill_module(PyObject* module, PyObject* (*make)()) noexcept;

// The result of the PyInit function of a module whose content `make` makes.
template <PyObject* (*make)()>
PyObject* init_module(const char* name) {
  static PyModuleDef_Slot slots[] = {
      {Py_mod_exec, reinterpret_cast<void*>(+[](PyObject* module) { return fill_module(module, make); })},
#if PY_VERSION_HEX >= 0x030C0000
      {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
      {0, nullptr}};  // and no Py_mod_gil: a free-threaded interpreter turns its lock on
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, name, nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}

}  // namespace warpcipher::python

// NB_MODULE for a module that exists once in a process.
#define WARPCIPHER_MODULE(name, variable)                                    \
  extern "C" PyObject* PyInit_##name##_content();                            \
  extern "C" NB_EXPORT PyObject* PyInit_##name() {                           \
    return warpcipher::python::init_module<&PyInit_##name##_content>(#name); \
  }                                                                          \
  NB_MODULE(name##_content, variable)
