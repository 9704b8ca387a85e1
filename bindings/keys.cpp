// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

#include "bind.hpp"  // the casters of strings
#include "core/error.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace warpcipher::python {

Keys::Keys(const Algorithm& algorithm, nb::handle object) {
  const bool one = nb::isinstance<Key>(object) || PyObject_CheckBuffer(object.ptr());
  if (one) {
    add(algorithm, object);
    return;
  }
  if (!PySequence_Check(object.ptr()) || PyUnicode_Check(object.ptr())) {
    throw_type_error("keys is " + type_name_of(object) + ": expected bytes, a Key, or a sequence of them");
  }
  pointers_.reserve(static_cast<std::size_t>(nb::len(object)));
  for (nb::handle item : nb::iter(object)) add(algorithm, item);
}

void Keys::add(const Algorithm& algorithm, nb::handle item) {
  if (!nb::isinstance<Key>(item)) {
    objects_.push_back(nb::type<Key>()(algorithm.name, item));
  } else {
    objects_.push_back(nb::borrow(item));
  }
  const Key* key = nb::inst_ptr<Key>(objects_.back());
  if (&key->algorithm() != &algorithm) {
    throw Error(Status::invalid_argument, "key " + std::to_string(pointers_.size()) + " is for " +
                                              std::string(key->algorithm().name) + ", the batch is " +
                                              std::string(algorithm.name));
  }
  pointers_.push_back(key);
}

std::vector<std::uint32_t> narrow(std::span<const std::uint64_t> values) {
  std::vector<std::uint32_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > UINT32_MAX) {
      throw Error(Status::invalid_argument, "key_index holds " + std::to_string(values[i]) + ", no key has that index");
    }
    result[i] = static_cast<std::uint32_t>(values[i]);
  }
  return result;
}

void check_given(nb::handle object, const Integers& column, const char* name, std::size_t count, const char* of) {
  if (!object.is_none() && column.values().size() != count) {
    throw Error(Status::invalid_argument, std::string(name) + " has " + std::to_string(column.values().size()) +
                                              " entries, expected one for each of " + std::to_string(count) + " " + of);
  }
}

std::string text_of(nb::handle object, const char* name) {
  if (!PyUnicode_Check(object.ptr())) {
    throw_type_error(std::string(name) + " is " + type_name_of(object) + ": expected a name");
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace warpcipher::python
