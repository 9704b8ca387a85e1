// SPDX-License-Identifier: Apache-2.0
// Uses only Python's own API: nanobind is not ready before the content is made, and never if the import is refused.
#include "once.hpp"

#include <string_view>

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// 1 or 0, or -1 with an exception set. 0 where PYTHON_GIL=0 or -Xgil=0 keeps a free-threaded interpreter's lock off.
int has_lock() {
  PyObject* ask = PySys_GetObject("_is_gil_enabled");  // Python 3.13
  if (ask == nullptr) return 1;
  const nb::object answer = nb::steal(PyObject_CallObject(ask, nullptr));
  return answer.is_valid() ? PyObject_IsTrue(answer.ptr()) : -1;
}

bool check_interpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "warpcipher works only in the main interpreter, and this is a subinterpreter: import it in the "
                    "main one, or use processes");
    return false;
  }
  const int locked = has_lock();
  if (locked == 0) {
    PyErr_SetString(PyExc_ImportError,
                    "warpcipher needs the interpreter lock, which this interpreter runs without: leave "
                    "PYTHON_GIL=0 and -Xgil=0 away");
  }
  return locked == 1;
}

nb::object make_content(PyObject* module, PyObject* (*make)()) {
  auto* definition = reinterpret_cast<PyModuleDef*>(make());  // lives as long as the process
  const nb::object spec = nb::steal(PyObject_GetAttrString(module, "__spec__"));
  if (definition == nullptr || !spec.is_valid()) return {};
  nb::object content = nb::steal(PyModule_FromDefAndSpec(definition, spec.ptr()));
  if (!content.is_valid() || PyModule_ExecDef(content.ptr(), definition) != 0) return {};
  return content;
}

// Kept in the interpreter's dictionary, which is released after all modules.
nb::object find_content(PyObject* module, PyObject* (*make)()) {
  PyObject* kept = PyInterpreterState_GetDict(PyInterpreterState_Get());
  const nb::object key = nb::steal(PyUnicode_FromFormat("warpcipher %p", reinterpret_cast<void*>(make)));
  if (kept == nullptr || !key.is_valid()) {
    if (PyErr_Occurred() == nullptr) PyErr_NoMemory();
    return {};
  }
  nb::object content = nb::borrow(PyDict_GetItemWithError(kept, key.ptr()));
  if (content.is_valid() || PyErr_Occurred() != nullptr) return content;
  content = make_content(module, make);
  if (content.is_valid() && PyDict_SetItem(kept, key.ptr(), content.ptr()) != 0) return {};
  return content;
}

}  // namespace

int fill_module(PyObject* module, PyObject* (*make)()) noexcept {
  if (!check_interpreter()) return -1;
  const nb::object content = find_content(module, make);
  if (!content.is_valid()) return -1;
  PyObject* names = PyModule_GetDict(content.ptr());
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t place = 0;
  while (PyDict_Next(names, &place, &name, &value) != 0) {
    const char* text = PyUnicode_AsUTF8AndSize(name, nullptr);
    if (text == nullptr) return -1;
    // __name__, __spec__ and the like are the importer's.
    if (std::string_view(text).starts_with("__") && std::string_view(text) != "__doc__") continue;
    if (PyObject_SetAttr(module, name, value) != 0) return -1;
  }
  return 0;
}

}  // namespace warpcipher::python
