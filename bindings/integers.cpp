// SPDX-License-Identifier: Apache-2.0
#include "integers.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "errors.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

[[noreturn]] void refuse_negative(const char* name) {
  throw nb::value_error((std::string(name) + " holds a negative number").c_str());
}

template <class T>
std::vector<std::uint64_t> widen(const Py_buffer& buffer, const char* name) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(buffer.len) / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(buffer.buf) + i * sizeof(T), sizeof(T));
    if (std::is_signed_v<T> && value < T{}) refuse_negative(name);
    values[i] = static_cast<std::uint64_t>(value);
  }
  return values;
}

// The letter of a struct-module format of one integer in native byte order, in lower case when signed; 0 for others.
char integer_format(const char* format) {
  if (format == nullptr) return 'B';
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == '\0' || format[1] != '\0') return 0;
  return std::strchr("bhilqnBHILQN", *format) != nullptr ? *format : '\0';
}

}  // namespace

std::uint64_t number_of(nb::handle object, const char* name, std::uint64_t most) {
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw_type_error(std::string(name) + " is " + type_name_of(object) + ": expected an int");
  }
  const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
  const bool is_outside = value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr;
  if (is_outside) PyErr_Clear();
  if (is_outside || value > most) {
    throw nb::value_error((std::string(name) + " is outside 0 to " + std::to_string(most)).c_str());
  }
  return value;
}

Integers::Integers(nb::handle object, const char* name) {
  if (object.is_none()) return;
  if (PyObject_CheckBuffer(object.ptr())) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      throw_buffer_error(std::string(name) + " is not a C-contiguous buffer (" + type_name_of(object) + ")");
    }
    exported_ = true;
    try {
      if (!borrow_buffer(name)) {
        throw_type_error(std::string(name) + " is " + type_name_of(object) + " of format '" + buffer_.format +
                         "': expected integers in native byte order");
      }
    } catch (...) {
      PyBuffer_Release(&buffer_);
      throw;
    }
    return;
  }
  if (!PySequence_Check(object.ptr()) || PyUnicode_Check(object.ptr())) {
    throw_type_error(std::string(name) + " is " + type_name_of(object) +
                     ": expected a sequence or a buffer of integers");
  }
  const auto size = static_cast<std::size_t>(nb::len(object));
  copied_.reserve(size);
  for (nb::handle item : nb::iter(object)) {
    nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) {
      PyErr_Clear();
      throw_type_error(std::string(name) + " holds " + type_name_of(item) + ": expected integers");
    }
    const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
    if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw nb::value_error((std::string(name) + " holds a number outside 0 to 2^64 - 1").c_str());
    }
    copied_.push_back(value);
  }
  values_ = copied_;
}

bool Integers::borrow_buffer(const char* name) {
  const char format = integer_format(buffer_.format);
  if (format == 0) return false;
  const bool is_signed = format >= 'a';
  if (buffer_.itemsize != 8) {
    switch (buffer_.itemsize) {
      case 1:
        copied_ = is_signed ? widen<std::int8_t>(buffer_, name) : widen<std::uint8_t>(buffer_, name);
        break;
      case 2:
        copied_ = is_signed ? widen<std::int16_t>(buffer_, name) : widen<std::uint16_t>(buffer_, name);
        break;
      default:
        copied_ = is_signed ? widen<std::int32_t>(buffer_, name) : widen<std::uint32_t>(buffer_, name);
    }
    values_ = copied_;
    return true;
  }
  const auto count = static_cast<std::size_t>(buffer_.len) / 8;
  if (reinterpret_cast<std::uintptr_t>(buffer_.buf) % alignof(std::uint64_t) != 0) {
    copied_ = is_signed ? widen<std::int64_t>(buffer_, name) : widen<std::uint64_t>(buffer_, name);
    values_ = copied_;
    return true;
  }
  values_ = {static_cast<const std::uint64_t*>(buffer_.buf), count};
  if (is_signed && std::any_of(values_.begin(), values_.end(), [](std::uint64_t v) { return v >> 63 != 0; })) {
    refuse_negative(name);
  }
  return true;
}

void Integers::own() {
  if (values_.data() == copied_.data()) return;
  copied_.assign(values_.begin(), values_.end());
  values_ = copied_;
}

Integers::~Integers() {
  if (exported_) PyBuffer_Release(&buffer_);
}

}  // namespace warpcipher::python
