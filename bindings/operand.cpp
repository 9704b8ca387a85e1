// SPDX-License-Identifier: Apache-2.0
#include "operand.hpp"

#include <nanobind/ndarray.h>

#include <cstring>
#include <limits>

#include "bind.hpp"
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
      case 'O':
        return "Python objects";
      case 'u':
      case 'w':
        return "text";
      case 'Z':  // complex, or ctypes' c_wchar_p
        if (c[1] == '\0' || std::strchr("fdg", c[1]) == nullptr) return "pointers";
        break;
      case 'P':
      case 'z':
      case '&':
      case 'X':
        return "pointers";
      default:
        break;
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
    case nb::device::cuda_host::value:
      break;
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value:
      device = tensor.device_id();
      break;
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
    throw_type_error(std::string(name) + " is " + type_name_of(object) + ": expected bytes-like or an array");
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

}  // namespace warpcipher::python
