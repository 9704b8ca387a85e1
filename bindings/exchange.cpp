// SPDX-License-Identifier: Apache-2.0
// Tensors by the C functions of their library (DLPack 1.3, __dlpack_c_exchange_api__): memory and current stream in one
// call, and no Python code of the library. For a short array that code takes longer than the work.
#include <nanobind/nanobind.h>

#include <cstdint>

#include "bind.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// As dlpack.h has them.
struct DlTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device;
  std::int32_t dimensions;
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
  const std::int64_t* shape;
  const std::int64_t* strides;  // in elements; nullptr: C-contiguous
  std::uint64_t byte_offset;
};

struct ExchangeApi {
  std::uint32_t major;
  std::uint32_t minor;
  const ExchangeApi* previous;
  void (*unused[3])();
  int (*tensor_of)(void* object, DlTensor* found);  // borrowed, without waiting; may be nullptr
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

constexpr std::uint32_t major_version = 1;
constexpr std::int32_t type_host = 1, type_cuda = 2;

bool is_contiguous(const DlTensor& tensor, std::size_t size) {
  if (tensor.strides == nullptr || size == 0) return true;
  std::int64_t expected = 1;
  for (std::int32_t i = tensor.dimensions; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// None where the library's own words are needed, if only to refuse the array.
nb::object span_from_exchange(nb::handle api, nb::handle array) {
  const auto* const functions = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(api.ptr(), "dlpack_exchange_api"));
  if (functions == nullptr) throw nb::python_error();
  if (functions->major != major_version || functions->tensor_of == nullptr) return nb::none();
  DlTensor tensor{};
  void* stream = nullptr;
  if (functions->tensor_of(array.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return nb::none();
  }
  if (tensor.device_type != type_host && tensor.device_type != type_cuda) return nb::none();
  std::size_t size = tensor.bits / 8u * tensor.lanes;
  for (std::int32_t i = 0; i < tensor.dimensions; ++i) size *= static_cast<std::size_t>(tensor.shape[i]);
  if (tensor.bits % 8 != 0 || !is_contiguous(tensor, size) || (tensor.data == nullptr && size != 0)) return nb::none();
  const bool on_device = tensor.device_type == type_cuda;
  if (on_device && functions->current_stream(type_cuda, tensor.device, &stream) != 0) {
    PyErr_Clear();
    return nb::none();
  }
  Span span{static_cast<std::uint8_t*>(tensor.data) + tensor.byte_offset, size, on_device ? tensor.device : host_device,
            false, nb::borrow(array)};
  return nb::make_tuple(std::move(span), reinterpret_cast<std::uintptr_t>(stream));
}

}  // namespace

void bind_exchange(nb::module_& m) {
  m.def("span_from_exchange", &span_from_exchange, nb::arg("api"), nb::arg("array"),
        nb::sig("def span_from_exchange(api: object, array: object) -> tuple[Span, int] | None"),
        "The memory of an array and its library's current stream there (0: host memory), by the C functions of the "
        "capsule that its type has as __dlpack_c_exchange_api__. None: not C-contiguous, or nothing that they know.");
}

}  // namespace warpcipher::python
