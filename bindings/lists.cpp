// SPDX-License-Identifier: Apache-2.0
// The lists of algorithms and engines, and the key derivation that file formats need.
#include <nanobind/nanobind.h>
#include <cstdint>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/hmac.hpp"
#include "engine/engine.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

const char* iv_rule_name(IvRule rule) {
  switch (rule) {
    case IvRule::none: return "none";
    case IvRule::block: return "block";
    case IvRule::any: return "any";
    case IvRule::fixed: return "fixed";
  }
  return "none";
}

nb::list list_algorithms() {
  nb::list list;
  for (const Algorithm& a : algorithms()) {
    nb::dict entry;
    entry["name"] = a.name;
    entry["key_size"] = a.key_len();
    entry["block_size"] = a.block_len();
    entry["iv"] = iv_rule_name(a.mode.iv);
    entry["is_aead"] = a.is_aead();
    entry["whole_blocks"] = a.mode.whole_blocks;
    entry["takes_padding"] = a.takes_padding();
    entry["parallel_encrypt"] = a.mode.parallel_encrypt;
    entry["parallel_decrypt"] = a.mode.parallel_decrypt;
    entry["iv_size"] = a.iv_len;
    list.append(entry);
  }
  return list;
}

nb::list list_engines() {
  nb::list list;
  for (const Engine* engine : engines()) {
    const std::string& reason = engine->unavailable_reason();
    nb::dict entry;
    entry["name"] = engine->name();
    entry["description"] = engine->description();
    entry["usable"] = reason.empty();
    entry["reason"] = reason;
    entry["memory"] = engine->memory() == Memory::host ? "host" : "device";
    nb::list devices;
    if (reason.empty()) {
      for (const std::string& device : engine->devices()) devices.append(device);
    }
    entry["devices"] = nb::tuple(devices);
    nb::list offered;
    for (const Algorithm& a : algorithms()) {
      if (engine->offers(a)) offered.append(a.name);
    }
    entry["algorithms"] = nb::tuple(offered);
    list.append(entry);
  }
  return list;
}

bool is_constant_time(std::string_view engine_name, std::string_view algorithm) {
  for (const Engine* engine : engines()) {
    if (engine->name() == engine_name) return engine->constant_time(find_algorithm(algorithm));
  }
  find_engine(engine_name);  // throws an error that lists the names
  return false;
}

nb::bytes derive(std::string_view hash_name, nb::handle ikm, nb::handle salt, nb::handle info, std::size_t length) {
  const Operand ikm_bytes(ikm, "ikm", Operand::Use::read);
  const Operand salt_bytes(salt, "salt", Operand::Use::read_or_none);
  const Operand info_bytes(info, "info", Operand::Use::read_or_none);
  const SecretBytes key = hkdf(hash_name, ikm_bytes.bytes(), salt_bytes.bytes(), info_bytes.bytes(), length);
  return nb::bytes(key.data(), key.size());
}

}  // namespace

void bind_lists(nb::module_& m) {
  m.def("algorithms", &list_algorithms, nb::sig("def algorithms() -> list[dict[str, typing.Any]]"));
  m.def(
      "algorithm_name", [](std::string_view name) { return find_algorithm(name).name; }, nb::arg("name"),
      "The name of the algorithm that is meant, whatever its case and separators.");
  m.def("engines", &list_engines, nb::sig("def engines() -> list[dict[str, typing.Any]]"));
  m.def("constant_time", &is_constant_time, nb::arg("engine"), nb::arg("algorithm"));
  m.def("hkdf", &derive, nb::arg("hash_name"), nb::arg("ikm"), nb::arg("salt").none(), nb::arg("info").none(),
        nb::arg("length"),
        nb::sig("def hkdf(hash_name: str, ikm: typing_extensions.Buffer, salt: typing_extensions.Buffer | None, info: "
                "typing_extensions.Buffer | None, length: int) -> bytes"),
        "HKDF (RFC 5869) with the hash of that name, such as \"sha256\".");
}

// Tensors by the C functions of their library (DLPack 1.3, __dlpack_c_exchange_api__): memory and current stream in one
// call, and no Python code of the library. For a short array that code takes longer than the work.
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
