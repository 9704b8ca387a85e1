// SPDX-License-Identifier: Apache-2.0
#include "operand.hpp"

#include <nanobind/ndarray.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <string>

#include "bind.hpp"
#include "core/error.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The content of a buffer of that format (PEP 3118) if it is neither bytes nor numbers; else nullptr. Its bytes are
// then addresses, or depend on how this machine stores text.
const char* not_numbers(const char* format) {
  if (format == nullptr) return nullptr;
  for (const char* c = format; *c != '\0'; ++c) {
    switch (*c) {
      case ':':  // the name of a field
        c = std::strchr(c + 1, ':');
        if (c == nullptr) return nullptr;
        break;
      case 'O': return "Python objects";
      case 'u':
      case 'w': return "text";
      case 'Z':  // complex, or ctypes' c_wchar_p
        if (c[1] == '\0' || std::strchr("fdg", c[1]) == nullptr) return "pointers";
        break;
      case 'P':
      case 'z':
      case '&':
      case 'X': return "pointers";
      default: break;
    }
  }
  return nullptr;
}

// The same for an exporter that has no format to give, as NumPy for datetime64 and bfloat16.
const char* not_numbers(nb::handle exporter) {
  const nb::object type = nb::getattr(exporter, "dtype", nb::none());
  return PyObject_IsTrue(nb::getattr(type, "hasobject", nb::bool_(false)).ptr()) == 1 ? "Python objects" : nullptr;
}

[[noreturn]] void refuse_content(nb::handle object, const char* name, const char* content) {
  throw_type_error(std::string(name) + " holds " + content + " (" + type_name_of(object) +
                   "): expected bytes or an array of numbers");
}

// Why an exporter would not give its memory as it was asked for. Exporters differ in the exception that they raise, so
// the object is asked again, for any layout.
[[noreturn]] void refuse_buffer(PyObject* object, const char* name, Operand::Use use) {
  const nb::python_error reason;  // takes the exporter's error
  Py_buffer any;
  if (PyObject_GetBuffer(object, &any, PyBUF_FULL_RO) != 0) throw nb::python_error();
  const bool readonly = any.readonly != 0;
  PyBuffer_Release(&any);
  if (readonly && use == Operand::Use::write) {
    throw_buffer_error(std::string(name) + " is read-only (" + type_name_of(object) + "): give a writable buffer");
  }
  throw_buffer_error(std::string(name) + " is not C-contiguous (" + type_name_of(object) + "): copy it first");
}

Span span_from_dlpack(nb::handle capsule, bool write) {
  // A writable import fails on a read-only tensor; the read-only one takes both.
  nb::ndarray<> writable;
  nb::ndarray<nb::ro> tensor;
  if (!nb::try_cast(capsule, writable, false)) {
    if (write) throw_buffer_error("out is read-only, or not a DLPack tensor");
    if (!nb::try_cast(capsule, tensor, false)) throw_buffer_error("not a DLPack tensor");
  } else {
    tensor = nb::ndarray<nb::ro>(writable);
  }
  constexpr std::uint8_t opaque_handle = 3;  // kDLOpaqueHandle, which nanobind does not name
  if (tensor.dtype().code == opaque_handle) {
    throw_type_error("the array holds pointers (DLPack's opaque handles): expected an array of numbers");
  }
  std::int64_t expected = 1;
  for (std::size_t i = tensor.ndim(); i-- > 0;) {
    if (tensor.shape(i) != 1 && tensor.size() != 0 && tensor.stride(i) != expected) {
      throw_buffer_error("the array is not C-contiguous: copy it first");
    }
    expected *= static_cast<std::int64_t>(tensor.shape(i));
  }
  int device = host_device;
  switch (tensor.device_type()) {
    case nb::device::cpu::value:
    case nb::device::cuda_host::value: break;
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value: device = tensor.device_id(); break;
    default:
      throw_buffer_error("the array lies on a device of DLPack type " + std::to_string(tensor.device_type()) +
                         ": expected host or CUDA memory");
  }
  auto* data = const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(tensor.data()));
  const std::size_t lanes = tensor.dtype().lanes;
  const std::size_t size = tensor.nbytes() * lanes;
  if (data == nullptr && size != 0) throw_buffer_error("the array has no memory: its pointer is null");
  // The tensor is freed with the Span: a capsule object keeps it.
  auto* keep = new nb::ndarray<nb::ro>(std::move(tensor));
  nb::capsule owner(keep, [](void* p) noexcept { delete static_cast<nb::ndarray<nb::ro>*>(p); });
  return {data, size, device, !write, owner};
}

Span make_span(std::uintptr_t pointer, std::size_t size, nb::object device, bool readonly, nb::object owner) {
  if (pointer == 0 && size != 0) throw nb::value_error("the array's pointer is null");
  const int ordinal = device.is_none() ? host_device : nb::cast<int>(device);
  return {reinterpret_cast<std::uint8_t*>(pointer), size, ordinal, readonly, std::move(owner)};
}

}  // namespace

Operand::Operand(nb::handle object, const char* name, Use use) {
  if (use == Use::read_or_none && object.is_none()) return;
  if (use != Use::write && PyBytes_Check(object.ptr())) {
    data_ = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(object.ptr()));
    size_ = static_cast<std::size_t>(PyBytes_Size(object.ptr()));
    owner_ = nb::borrow(object);
    return;
  }
  if (PyObject_CheckBuffer(object.ptr())) {
    const int flags = PyBUF_C_CONTIGUOUS | (use == Use::write ? PyBUF_WRITABLE : 0);
    const char* content = nullptr;
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags | PyBUF_FORMAT) == 0) {
      content = not_numbers(buffer_.format);
    } else {
      PyErr_Clear();
      if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) refuse_buffer(object.ptr(), name, use);
      content = not_numbers(object);
    }
    if (content != nullptr) {
      PyBuffer_Release(&buffer_);
      refuse_content(object, name, content);
    }
    exported_ = true;
    data_ = static_cast<std::uint8_t*>(buffer_.buf);
    size_ = static_cast<std::size_t>(buffer_.len);
    return;
  }
  if (!nb::isinstance<Span>(object)) {
    const std::string type = type_name_of(object);
    const char* expected = ": expected bytes-like or an array";
    if (type.starts_with("warpcipher.keys.")) {
      expected = ": expected bytes: `warpcipher.keys.resolve` has them of a source";
    } else if (nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__cuda_array_interface__")) {
      expected = ": expected bytes-like, in host memory, such as numpy.asarray of it";
    }
    throw_type_error(std::string(name) + " is " + type + expected);
  }
  const Span& span = *nb::inst_ptr<Span>(object);
  if (span.readonly && use == Use::write) {
    throw_buffer_error(std::string(name) + " is read-only (" + type_name_of(span.owner) + "): give a writable array");
  }
  data_ = span.data;
  size_ = span.size;
  device_ = span.device;
  owner_ = nb::borrow(object);
}

Operand::~Operand() {
  if (exported_) PyBuffer_Release(&buffer_);
}

std::vector<std::uint8_t> copy_of(nb::handle object, const char* name, Operand::Use use) {
  const Operand operand(object, name, use);
  return {operand.bytes().begin(), operand.bytes().end()};
}

bool is_plain(nb::handle object) {
  return PyBytes_CheckExact(object.ptr()) || PyByteArray_CheckExact(object.ptr()) || PyMemoryView_Check(object.ptr());
}

std::string place(const Operand& operand) {
  return operand.device() == host_device ? "host memory" : "GPU " + std::to_string(operand.device());
}

void bind_span(nb::module_& m) {
  nb::class_<Span>(m, "Span", "Contiguous memory of an array, and the object that owns it.")
      .def(
          "__init__",
          [](Span* self, std::uintptr_t pointer, std::size_t size, nb::object device, bool readonly, nb::object owner) {
            new (self) Span(make_span(pointer, size, std::move(device), readonly, std::move(owner)));
          },
          nb::arg("pointer"), nb::arg("size"), nb::arg("device").none(), nb::arg("readonly"), nb::arg("owner"),
          nb::sig("def __init__(self, pointer: int, size: int, device: int | None, readonly: bool, owner: object) -> "
                  "None"),
          "`size` bytes at `pointer`, on CUDA device `device` or in host memory (None).")
      .def("__len__", [](const Span& self) { return self.size; })
      .def_prop_ro(
          "device",
          [](const Span& self) -> nb::object {
            if (self.device == host_device) return nb::none();
            return nb::int_(self.device);
          },
          nb::sig("def device(self) -> int | None"), "The CUDA ordinal, or None for host memory.")
      .def("__repr__", [](const Span& self) {
        const std::string where = self.device == host_device ? "host memory" : "GPU " + std::to_string(self.device);
        return "<Span of " + std::to_string(self.size) + " bytes in " + where + ">";
      });
  m.def(
      "check_bytes",
      [](nb::handle object, const std::string& name) { const Operand held(object, name.c_str(), Operand::Use::read); },
      nb::arg("object").none(), nb::arg("name"), nb::sig("def check_bytes(object: object, name: str) -> None"),
      "Raises the error of a call that takes the object as bytes to read.");
  m.def("span_from_dlpack", &span_from_dlpack, nb::arg("capsule"), nb::arg("write"),
        nb::sig("def span_from_dlpack(capsule: object, write: bool) -> Span"),
        "The memory of a DLPack capsule, which is used up. BufferError when not contiguous, or not host or CUDA "
        "memory.");
}

namespace {

// A shorter text holds no whole page of 2 MiB. Zen 3, two threads, AES-128-CTR of 4 MiB into new memory: 1.5 GB/s in
// pages of 4 KiB, 7.3 in pages of 2 MiB.
constexpr std::size_t least_huge = std::size_t{2} << 20;

// Advice: a system without huge pages refuses it, and nothing else changes.
void ask_for_huge_pages(void* data, std::size_t size) {
  if (size < least_huge) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(data) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + size) / page * page;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace

nb::object new_bytes(std::size_t size) {
  nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!made.is_valid()) throw nb::python_error();
  ask_for_huge_pages(bytes_of(made), size);
  return made;
}

nb::object new_bytearray(std::size_t size) {
  nb::object made = nb::steal(PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!made.is_valid()) throw nb::python_error();
  ask_for_huge_pages(PyByteArray_AsString(made.ptr()), size);
  return made;
}

std::uint8_t* bytes_of(nb::handle bytes) { return reinterpret_cast<std::uint8_t*>(PyBytes_AsString(bytes.ptr())); }

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

nb::object index_of(nb::handle object, const char* name) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (index.is_valid()) return index;
  PyErr_Clear();
  throw_type_error(std::string(name) + " is " + type_name_of(object) + ": expected an int");
}

std::uint64_t number_of(nb::handle object, const char* name, std::uint64_t most) {
  const nb::object index = index_of(object, name);
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
      case 1: copied_ = is_signed ? widen<std::int8_t>(buffer_, name) : widen<std::uint8_t>(buffer_, name); break;
      case 2: copied_ = is_signed ? widen<std::int16_t>(buffer_, name) : widen<std::uint16_t>(buffer_, name); break;
      default: copied_ = is_signed ? widen<std::int32_t>(buffer_, name) : widen<std::uint32_t>(buffer_, name);
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
    refuse("key ", pointers_.size(), " is for ", key->algorithm().name, ", the batch is ", algorithm.name);
  }
  pointers_.push_back(key);
}

std::vector<std::uint32_t> narrow(std::span<const std::uint64_t> values) {
  std::vector<std::uint32_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > UINT32_MAX) {
      refuse("key_index holds ", values[i], ", no key has that index");
    }
    result[i] = static_cast<std::uint32_t>(values[i]);
  }
  return result;
}

void check_given(nb::handle object, const Integers& column, const char* name, std::size_t count, const char* of) {
  if (!object.is_none() && column.values().size() != count) {
    refuse(name, " has ", column.values().size(), " entries, expected one for each of ", count, " ", of);
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
