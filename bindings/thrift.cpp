// SPDX-License-Identifier: Apache-2.0
// Structs of thrift's compact protocol as Python has them: python/warpcipher/parquet/thrift.py says how.
#include <nanobind/nanobind.h>
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "operand.hpp"
#include "parquet/compact.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using parquet::Bytes;
using parquet::CompactReader;
using parquet::CompactWriter;
using parquet::Kind;

// A result of CPython's C API, as an object that is released. Null stands for an exception that is set, and is thrown.
nb::object checked(PyObject* made) {
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object integer(long long value) { return checked(PyLong_FromLongLong(value)); }

nb::object bytes_of(Bytes value) {
  return checked(
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(value.data()), static_cast<Py_ssize_t>(value.size())));
}

nb::object pair(long long first, nb::object second) {
  const nb::object number = integer(first);
  return checked(PyTuple_Pack(2, number.ptr(), second.ptr()));
}

// The wanted part of a field, by a shape; null: nothing. `shape` is a dict, or None, which asks for nothing.
PyObject* asked_for(nb::handle shape, nb::handle number, bool& is_asked) {
  PyObject* found = shape.is_none() ? nullptr : PyDict_GetItemWithError(shape.ptr(), number.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  is_asked = found != nullptr;
  return is_asked ? found : Py_None;
}

nb::object read_struct(CompactReader& reader, nb::handle shape, int depth);

nb::object read_list(CompactReader& reader, nb::handle shape, int depth) {
  const CompactReader::List head = reader.list();
  const bool is_known = head.kind == Kind::structure || is_integer(head.kind) || head.kind == Kind::binary;
  if (!is_known) {
    refuse("a list of elements of type ", static_cast<int>(head.kind), ", expected structs, integers or binary");
  }
  const nb::object items = checked(PyList_New(0));
  for (std::size_t i = 0; i < head.count; ++i) {
    const nb::object item = head.kind == Kind::structure ? read_struct(reader, shape, depth + 1)
                            : head.kind == Kind::binary  ? bytes_of(reader.binary())
                                                         : integer(reader.integer());
    if (PyList_Append(items.ptr(), item.ptr()) != 0) throw nb::python_error();
  }
  return pair(static_cast<int>(head.kind), items);
}

// The value of a field that is asked for; (type, value). A type without its own form stays bytes.
nb::object read_value(CompactReader& reader, Kind kind, nb::handle shape, int depth) {
  const int type = static_cast<int>(kind);
  switch (kind) {
    case Kind::i16:
    case Kind::i32:
    case Kind::i64: return pair(type, integer(reader.integer()));
    case Kind::structure: return pair(type, read_struct(reader, shape, depth + 1));
    case Kind::list: return pair(type, read_list(reader, shape, depth + 1));
    case Kind::yes:
    case Kind::no: return pair(type, nb::borrow(kind == Kind::yes ? Py_True : Py_False));
    case Kind::i8: return pair(type, integer(static_cast<std::int8_t>(reader.byte())));
    case Kind::binary: return pair(type, bytes_of(reader.binary()));
    case Kind::real: {
      double value;
      std::memcpy(&value, reader.take(sizeof value).data(), sizeof value);
      return pair(type, checked(PyFloat_FromDouble(value)));
    }
    default: break;
  }
  const std::size_t start = reader.position();
  reader.skip(kind, depth);
  return pair(-type, bytes_of(reader.since(start)));
}

nb::object read_struct(CompactReader& reader, nb::handle shape, int depth) {
  CompactReader::check_depth(depth);
  nb::object fields = checked(PyDict_New());
  CompactReader::Field field;
  for (Py_ssize_t count = 1; reader.next(field); ++count) {
    const nb::object number = integer(field.number);
    bool is_asked;
    const nb::handle inner = asked_for(shape, number, is_asked);
    nb::object value;
    if (is_asked) {
      value = read_value(reader, field.kind, inner, depth);
    } else {
      const std::size_t start = reader.position();
      reader.skip(field.kind, depth);
      value = pair(-static_cast<int>(field.kind), bytes_of(reader.since(start)));
    }
    if (PyDict_SetItem(fields.ptr(), number.ptr(), value.ptr()) != 0) throw nb::python_error();
    if (PyDict_Size(fields.ptr()) != count) {
      refuse("field ", field.number, " is there twice");
    }
  }
  return fields;
}

nb::tuple read(nb::handle data, nb::handle shape, std::size_t start) {
  const Operand text(data, "data", Operand::Use::read);
  if (!PyDict_Check(shape.ptr())) throw nb::type_error("shape: expected a dict");
  CompactReader reader(text.bytes(), start);
  const nb::object fields = read_struct(reader, shape, 0);
  return nb::make_tuple(fields, reader.position());
}

long long long_of(PyObject* object) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

Bytes view_of(PyObject* object) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &data, &size) != 0) throw nb::python_error();
  return {reinterpret_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)};
}

// The two of a tuple.
std::pair<PyObject*, PyObject*> two_of(PyObject* object) {
  PyObject* first;
  PyObject* second;
  if (!PyTuple_Check(object)) throw nb::type_error("a field: expected a tuple of type and value");
  if (PyArg_ParseTuple(object, "OO", &first, &second) == 0) throw nb::python_error();
  return {first, second};
}

void write_struct(CompactWriter& writer, PyObject* fields, int depth);

void write_binary(CompactWriter& writer, PyObject* object) {
  const Bytes value = view_of(object);
  writer.varint(value.size());
  writer.bytes(value);
}

void write_list(CompactWriter& writer, PyObject* object, int depth) {
  const auto [type, items] = two_of(object);
  const auto kind = static_cast<Kind>(long_of(type));
  if (!PyList_Check(items)) throw nb::type_error("the elements of a list: expected a list");
  writer.list(kind, static_cast<std::size_t>(PyList_Size(items)));
  for (Py_ssize_t i = 0; i < PyList_Size(items); ++i) {
    PyObject* item = PyList_GetItem(items, i);
    if (kind == Kind::structure) {
      write_struct(writer, item, depth + 1);
    } else if (kind == Kind::binary) {
      write_binary(writer, item);
    } else {
      writer.varint(parquet::zigzag(long_of(item)));
    }
  }
}

void write_value(CompactWriter& writer, Kind kind, PyObject* value, int depth) {
  switch (kind) {
    case Kind::i16:
    case Kind::i32:
    case Kind::i64: return writer.varint(parquet::zigzag(long_of(value)));
    case Kind::structure: return write_struct(writer, value, depth + 1);
    case Kind::list: return write_list(writer, value, depth + 1);
    case Kind::binary: return write_binary(writer, value);
    case Kind::i8: return writer.byte(static_cast<std::uint8_t>(long_of(value)));
    case Kind::real: {
      const double number = PyFloat_AsDouble(value);
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      std::uint8_t bytes[sizeof number];
      std::memcpy(bytes, &number, sizeof number);
      return writer.bytes(bytes);
    }
    default: return;  // a bool is its type
  }
}

void write_struct(CompactWriter& writer, PyObject* fields, int depth) {
  CompactReader::check_depth(depth);
  if (!PyDict_Check(fields)) throw nb::type_error("a struct: expected a dict");
  std::vector<std::pair<int, PyObject*>> sorted;
  PyObject* key;
  PyObject* field;
  for (Py_ssize_t at = 0; PyDict_Next(fields, &at, &key, &field) != 0;) {
    sorted.emplace_back(static_cast<int>(long_of(key)), field);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  int last = 0;
  for (const auto& [number, entry] : sorted) {
    const auto [type, value] = two_of(entry);
    const long long signed_kind = long_of(type);
    auto kind = static_cast<Kind>(signed_kind < 0 ? -signed_kind : signed_kind);
    if (kind == Kind::yes || kind == Kind::no) {
      const int is_true = signed_kind < 0 ? kind == Kind::yes : PyObject_IsTrue(value);
      if (is_true < 0) throw nb::python_error();
      kind = is_true != 0 ? Kind::yes : Kind::no;
    }
    writer.field(last, number, kind);
    if (signed_kind < 0) {
      writer.bytes(view_of(value));
    } else {
      write_value(writer, kind, value, depth);
    }
  }
  writer.byte(0);
}

nb::object write(nb::handle fields) {
  CompactWriter writer;
  write_struct(writer, fields.ptr(), 0);
  return bytes_of(writer.out());
}

}  // namespace

void bind_thrift(nb::module_& m) {
  m.def("read_thrift", &read, nb::arg("data"), nb::arg("shape"), nb::arg("start"),
        nb::sig("def read_thrift(data: typing_extensions.Buffer, shape: object, start: int) -> "
                "tuple[dict[int, tuple[int, typing.Any]], int]"),
        "The struct at `start`, of whose fields `shape` asks for some, and where it ends. ValueError says what is "
        "wrong.");
  m.def("write_thrift", &write, nb::arg("fields"),
        nb::sig("def write_thrift(fields: dict[int, tuple[int, typing.Any]]) -> bytes"), "The bytes of a struct.");
}

}  // namespace warpcipher::python
