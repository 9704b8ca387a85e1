// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <nanobind/stl/string.h>

#include "core/error.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// An exception of this package. warpcipher._native defines it, once in the process; other extensions ask the package
// when they raise one, as they then load on their own (the stub generator has them do so).
struct PackageError {
  const char* name;
  PyObject* type = nullptr;

  void define(nb::module_& m, PyObject* base, const char* text) {
    const std::string full = std::string(nb::str(m.attr("__name__")).c_str()) + "." + name;
    type = PyErr_NewExceptionWithDoc(full.c_str(), text, base, nullptr);
    if (type == nullptr) throw nb::python_error();
    m.attr(name) = nb::borrow(type);
  }

  void set(const char* text) const {
    if (type != nullptr) return PyErr_SetString(type, text);
    nb::object errors = nb::steal(PyImport_ImportModule("warpcipher._errors"));
    if (!errors.is_valid()) return;
    nb::object found = nb::steal(PyObject_GetAttrString(errors.ptr(), name));
    if (found.is_valid()) PyErr_SetString(found.ptr(), text);
  }
};

PackageError invalid_tag_base{"InvalidTagBase"};
PackageError invalid_tag{"InvalidTag"};
PackageError engine_error{"EngineError"};

void set_error(const Error& error) {
  switch (error.status()) {
    case Status::invalid_tag: return invalid_tag.set(error.what());
    case Status::engine_unavailable:
    case Status::engine_failure: return engine_error.set(error.what());
    case Status::out_of_memory: return PyErr_SetString(PyExc_MemoryError, error.what());
    case Status::read_failed: return PyErr_SetString(PyExc_OSError, error.what());
    case Status::ok:
    case Status::invalid_argument:
    case Status::invalid_padding: break;
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

void bind_errors(nb::module_& m) {
  // A base that Python made: python/warpcipher/_errors.py exchanges it for pyca/cryptography's exception, and Python
  // exchanges no base that is built in.
  invalid_tag_base.define(m, PyExc_Exception, "Stands in for cryptography.exceptions.InvalidTag.");
  invalid_tag.define(m, invalid_tag_base.type,
                     "An authentication tag did not match: wrong key, nonce or associated data, or altered data.\n\n"
                     "Where the package `cryptography` is loaded, a subclass of its exceptions.InvalidTag.");
  engine_error.define(m, PyExc_RuntimeError,
                      "The engine asked for is unknown, cannot run here, or failed. The text says why.");
}

void bind_status(nb::module_& m) {
  m.def(
      "raise_for_status", [](Status status, const std::string& prefix) { throw_status(status, prefix); },
      nb::arg("status"), nb::arg("prefix"),
      nb::sig("def raise_for_status(status: Status, prefix: str) -> typing.NoReturn"),
      "Raises the exception of a status other than OK.");
  // A second copy of this file in the process: nanobind shares types among copies, but ends the process when an
  // enumeration gets a value twice.
  if (const nb::handle known = nb::type<Status>(); known.is_valid()) {
    m.attr("Status") = known;
    return;
  }
  nb::enum_<Status>(m, "Status", nb::is_arithmetic(),
                    "The outcome of a message, as a number. Columns have only OK, INVALID_TAG and INVALID_PADDING.")
      .value("OK", Status::ok, "The output is right.")
      .value("INVALID_ARGUMENT", Status::invalid_argument, "The input cannot be right, whatever the engine.")
      .value("INVALID_TAG", Status::invalid_tag, "An authentication tag did not match; the output is zeros.")
      .value("INVALID_PADDING", Status::invalid_padding, "PKCS#7 padding did not match; the output is zeros.")
      .value("ENGINE_UNAVAILABLE", Status::engine_unavailable, "The engine asked for is unknown or cannot run here.")
      .value("ENGINE_FAILURE", Status::engine_failure, "The engine failed while it ran.")
      .value("OUT_OF_MEMORY", Status::out_of_memory, "There was no memory for the work.")
      .value("READ_FAILED", Status::read_failed, "A file could not be read, or ends too early.");
}

void throw_invalid_tag() { throw_status(Status::invalid_tag, ""); }

void throw_status(Status status, const std::string& prefix) {
  if (status == Status::invalid_tag) {
    throw Error(status, prefix +
                            "the tag does not match: the key, the nonce or the associated data is another one, or "
                            "the data was altered");
  }
  throw Error(status, prefix +
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
