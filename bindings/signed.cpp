// SPDX-License-Identifier: Apache-2.0
// Functions and methods that tell `inspect.signature` their arguments. nanobind's do not, and its types are immutable.
// An object of these types takes the place of one, in a module or a class, and hands each call on.
#include <structmember.h>

#include <cstddef>
#include <cstring>

#include "bind.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

struct Signed {
  PyObject base;
  vectorcallfunc vectorcall;
  PyObject* target;  // nanobind's function
};

Signed* self_of(PyObject* object) { return reinterpret_cast<Signed*>(object); }

// nanobind's text of arguments that fit no signature lists C++ overloads. This one is worded as Python words it.
void reword(PyObject* target, PyObject* const* arguments, std::size_t count, PyObject* names) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return;
  nb::python_error error;
  if (std::strstr(error.what(), "incompatible function arguments") == nullptr) return error.restore();
  const std::size_t positional = PyVectorcall_NARGS(count);
  nb::list values;
  for (std::size_t i = 0; i < positional; ++i) values.append(nb::handle(arguments[i]));
  nb::dict named;
  for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_Size(names); ++i) {
    named[nb::handle(PyTuple_GetItem(names, i))] = nb::handle(arguments[positional + static_cast<std::size_t>(i)]);
  }
  const nb::object module = nb::steal(PyImport_ImportModule("warpcipher._signatures"));
  if (!module.is_valid()) return;
  const nb::object text =
      nb::steal(PyObject_CallMethod(module.ptr(), "mismatch", "OOO", target, values.ptr(), named.ptr()));
  if (text.is_valid()) PyErr_SetObject(PyExc_TypeError, text.ptr());
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t count, PyObject* names) {
  PyObject* result = PyObject_Vectorcall(self_of(self)->target, arguments, count, names);
  if (result == nullptr) reword(self_of(self)->target, arguments, count, names);
  return result;
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  static constexpr const char* of_target[] = {"__doc__", "__module__", "__name__", "__qualname__", "__nb_signature__"};
  const char* text = PyUnicode_AsUTF8AndSize(name, nullptr);
  if (text == nullptr) return nullptr;
  for (const char* one : of_target) {
    if (std::strcmp(text, one) == 0) return PyObject_GetAttr(self_of(self)->target, name);
  }
  if (std::strcmp(text, "__signature__") != 0) return PyObject_GenericGetAttr(self, name);
  // Python code reads nanobind's text: imported with the package.
  const nb::object module = nb::steal(PyImport_ImportModule("warpcipher._signatures"));
  if (!module.is_valid()) return nullptr;
  return PyObject_CallMethod(module.ptr(), "of", "O", self_of(self)->target);
}

// `help` asks for it past get_attribute().
PyObject* get_doc(PyObject* self, void*) { return PyObject_GetAttrString(self_of(self)->target, "__doc__"); }

// Of a method: the object's own, when it is asked for without being called at once.
PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  const nb::object types = nb::steal(PyImport_ImportModule("types"));
  if (!types.is_valid()) return nullptr;
  return PyObject_CallMethod(types.ptr(), "MethodType", "OO", self, instance);
}

// Of a function: itself, in a class too. `inspect.isroutine`, and so `help`, knows native functions by this.
PyObject* bind_to_nothing(PyObject* self, PyObject*, PyObject*) {
  Py_INCREF(self);
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self_of(self)->target);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(self_of(self)->target);
  return 0;
}

void release(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

// Kept by the module.
nb::handle function_type, method_type;

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Signed, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef computed[] = {{"__doc__", &get_doc, nullptr, nullptr, nullptr},
                          {nullptr, nullptr, nullptr, nullptr, nullptr}};

nb::object make_type(const char* name, bool is_method) {
  PyType_Slot slots[] = {{Py_tp_members, members},
                         {Py_tp_getset, computed},
                         {Py_tp_getattro, reinterpret_cast<void*>(&get_attribute)},
                         {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&release)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(is_method ? &bind_to : &bind_to_nothing)},
                         {0, nullptr}};
  const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE |
                         (is_method ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0);
  PyType_Spec spec{name, sizeof(Signed), 0, flags, slots};
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  return type;
}

nb::object with_signature(nb::handle target, bool is_method) {
  const nb::handle type = is_method ? method_type : function_type;
  auto* made = PyObject_GC_New(Signed, reinterpret_cast<PyTypeObject*>(type.ptr()));
  if (made == nullptr) throw nb::python_error();
  made->vectorcall = &call;
  made->target = target.inc_ref().ptr();
  PyObject_GC_Track(made);
  return nb::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace

void bind_signed(nb::module_& m) {
  const nb::object function = make_type("warpcipher._native.SignedFunction", false);
  const nb::object method = make_type("warpcipher._native.SignedMethod", true);
  m.attr("SignedFunction") = function_type = function;
  m.attr("SignedMethod") = method_type = method;
  m.def("with_signature", &with_signature, nb::arg("target"), nb::arg("is_method"),
        nb::sig("def with_signature(target: object, is_method: bool) -> typing.Any"),
        "A native function, or method of a class, in a form that `inspect.signature` understands.");
}

}  // namespace warpcipher::python
