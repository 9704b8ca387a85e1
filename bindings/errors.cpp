// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include "core/error.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// warpcipher/_errors.py defines InvalidTag and EngineError. Looked up when one is raised: the module then loads on its
// own (the stub generator does so), and a raise is rare.
void set_package_error(const char* name, const char* text) {
  PyObject* errors = PyImport_ImportModule("warpcipher._errors");
  if (errors == nullptr) return;
  PyObject* type = PyObject_GetAttrString(errors, name);
  Py_DECREF(errors);
  if (type == nullptr) return;
  PyErr_SetString(type, text);
  Py_DECREF(type);
}

void set_error(const Error& error) {
  switch (error.status()) {
    case Status::invalid_tag:
      return set_package_error("InvalidTag", error.what());
    case Status::engine_unavailable:
    case Status::engine_failure:
      return set_package_error("EngineError", error.what());
    case Status::out_of_memory:
      return PyErr_SetString(PyExc_MemoryError, error.what());
    case Status::ok:
    case Status::invalid_argument:
    case Status::invalid_padding:
      break;
  }
  PyErr_SetString(PyExc_ValueError, error.what());
}

}  // namespace

void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      set_error(error);
    }
  });
}

void throw_invalid_tag() { throw_status(static_cast<int>(Status::invalid_tag), ""); }

void throw_status(int status, const std::string& prefix) {
  const auto code = static_cast<Status>(status);
  if (code == Status::invalid_tag) {
    throw Error(code, prefix +
                          "the tag does not match: the key, the nonce or the associated data is another one, or "
                          "the data was altered");
  }
  throw Error(code, prefix +
                        "the PKCS#7 padding does not match: the key or the IV is another one, or the data was "
                        "altered");
}

void throw_type_error(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw nb::python_error();
}

void throw_buffer_error(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw nb::python_error();
}

std::string type_name_of(nb::handle object) { return nb::str(nb::type_name(object.type())).c_str(); }

}  // namespace warpcipher::python
