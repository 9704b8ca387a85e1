// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file, for python/warpcipher/weights/header.py, which says what the fields are.
#include <array>
#include <functional>
#include <optional>

#include "bind.hpp"
#include "checked.hpp"
#include "weights/plain_tensor.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using weights::PlainTensor;

nb::object text_of(std::string_view text) {
  return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

nb::object number(std::uint64_t value) { return checked(PyLong_FromUnsignedLongLong(value)); }

// What the tensors of one dtype and shape share. size: their bytes; nothing where they are no whole number, where it is
// too large, or where there is no such dtype.
struct Kind {
  std::string_view text;
  nb::object dtype, shape;
  std::optional<std::uint64_t> size;
};

Kind kind_of(const PlainTensor& tensor, nb::handle bits_by_dtype) {
  Kind kind{tensor.kind, text_of(tensor.dtype), nb::object(), std::nullopt};
  nb::list lengths;
  PyObject* bits = PyDict_GetItemWithError(bits_by_dtype.ptr(), kind.dtype.ptr());
  if (bits == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  std::uint64_t product = bits == nullptr ? 0 : nb::cast<std::uint64_t>(nb::handle(bits));
  bool is_known = bits != nullptr;
  bool is_empty = false;
  weights::for_lengths(tensor.lengths, [&](std::uint64_t length) {
    lengths.append(number(length));
    // As `tensor_size` of header.py: array libraries count a length of 0 as 1.
    if (length == 0) is_empty = true;
    if (length != 0 && __builtin_mul_overflow(product, length, &product)) is_known = false;
  });
  if (is_empty) product = 0;
  kind.shape = nb::tuple(lengths);
  if (is_known && product % 8 == 0) kind.size = product / 8;
  return kind;
}

// A few kinds, each where its hash says: whoever writes the file cannot make this slow.
class Kinds {
 public:
  explicit Kinds(nb::handle bits_by_dtype) : bits_(bits_by_dtype) {}

  const Kind& of(const PlainTensor& tensor) {
    Kind& kind = slots_[std::hash<std::string_view>()(tensor.kind) % slots_.size()];
    if (kind.text != tensor.kind) kind = kind_of(tensor, bits_);
    return kind;
  }

 private:
  nb::handle bits_;
  std::array<Kind, 64> slots_;
};

std::size_t take_tensors(nb::str text, std::size_t at, nb::dict bits, nb::handle type, nb::dict tensors) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  // `at` counts characters, and so must be bytes.
  if (size != PyUnicode_GetLength(text.ptr())) throw nb::value_error("text: expected ASCII");
  const std::string_view whole(data, static_cast<std::size_t>(size));
  if (at > whole.size()) throw nb::value_error("at: beyond the end of text");
  const auto make = reinterpret_cast<newfunc>(PyType_GetSlot(&PyTuple_Type, Py_tp_new));
  Kinds kinds(bits);
  while (const std::optional<PlainTensor> found = weights::plain_tensor(whole.substr(at))) {
    const Kind& kind = kinds.of(*found);
    if (!kind.size || found->end < found->start || found->end - found->start != *kind.size) break;
    const nb::object name = text_of(found->name);
    const int is_there = PyDict_Contains(tensors.ptr(), name.ptr());
    if (is_there < 0) throw nb::python_error();
    if (is_there != 0) break;
    const nb::object start = number(found->start), end = number(found->end);
    const nb::object fields = checked(PyTuple_Pack(4, kind.dtype.ptr(), kind.shape.ptr(), start.ptr(), end.ptr()));
    const nb::object arguments = checked(PyTuple_Pack(1, fields.ptr()));
    const nb::object info = checked(make(reinterpret_cast<PyTypeObject*>(type.ptr()), arguments.ptr(), nullptr));
    if (PyDict_SetItem(tensors.ptr(), name.ptr(), info.ptr()) != 0) throw nb::python_error();
    at += found->size;
  }
  return at;
}

}  // namespace

void bind_weights(nb::module_& m) {
  m.def("take_tensors", &take_tensors, nb::arg("text"), nb::arg("at"), nb::arg("bits"), nb::arg("type"),
        nb::arg("tensors"),
        nb::sig("def take_tensors(text: str, at: int, bits: dict[str, int], type: type[tuple[typing.Any, ...]], "
                "tensors: dict[str, typing.Any]) -> int"),
        "Takes the tensors that follow in an ASCII header, up to one that is not spelt plainly or not right: each goes "
        "to `tensors` as a `type` of dtype, shape, start and end. bits: of an element, by dtype. Returns where it "
        "stopped.");
}

}  // namespace warpcipher::python
