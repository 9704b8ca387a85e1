// SPDX-License-Identifier: Apache-2.0
// The lists of algorithms and engines, and the key derivation that file formats need.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/hmac.hpp"
#include "engine/cpu/rule.hpp"
#include "engine/cuda/execution/launch_plan.hpp"
#include "engine/device_engine.hpp"
#include "engine/engine.hpp"
#include "flow/transfer_settings.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"
#include "tuning/tuner.hpp"

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
    entry["least_size"] = a.mode.least_text_len;
    entry["most_size"] = a.mode.most_text_len;
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

// The measurements of this machine: python/warpcipher/tuning.py makes it public.

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// Bytes a second of the longest text measured, by both engines at once; 0 if a single engine is as fast.
double rate_of_both(const Algorithm& algorithm, Direction direction, const Rates& rates, bool pinned) {
  if (!rates.together(pinned).pays()) return 0;
  const Cost& device = rates.device(pinned);
  const double bytes = std::min(rates.cpu.points.back().bytes, device.points.back().bytes);
  const auto len = static_cast<std::size_t>(bytes);
  const JobPart part{&algorithm, direction, 1, len, len};
  return bytes / find_balance(part, rates.cpu, device, rates.together(pinned)).seconds;
}

void add_rates(nb::list& list, const RateTable& table) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      const Rates& rates = table.at(algorithm, direction);
      if (!rates.cpu.known()) continue;
      nb::dict entry;
      entry["algorithm"] = algorithm.name;
      entry["direction"] = direction == Direction::encrypt ? "encrypt" : "decrypt";
      entry["cpu"] = rates.cpu.rate();
      entry["pageable"] = rates.pageable.rate();
      entry["pinned"] = rates.pinned.rate();
      entry["both_pageable"] = rate_of_both(algorithm, direction, rates, false);
      entry["both_pinned"] = rate_of_both(algorithm, direction, rates, true);
      list.append(entry);
    }
  }
}

void add_policies(nb::list& list, const Tuning& now, int device, const std::vector<Policy>& policies) {
  for (const Policy& policy : policies) {
    nb::dict entry;
    entry["device"] = device == PolicyChoice::of_transfer ? nb::none() : nb::object(nb::int_(device));
    entry["name"] = policy.name;
    entry["value"] = policy.value;
    nb::list values;
    for (const std::string_view value : policy.values) values.append(value);
    entry["values"] = nb::tuple(values);
    entry["reason"] = policy.reason;
    const auto measured = std::find_if(now.choices.begin(), now.choices.end(), [&](const PolicyChoice& choice) {
      return choice.device == device && choice.name == policy.name;
    });
    const bool known = measured != now.choices.end() && measured->value == policy.value;
    entry["rate"] = known ? measured->rate : 0.0;
    entry["rate_of_default"] = known ? measured->rate_of_default : 0.0;
    list.append(entry);
  }
}

nb::list all_policies(const Tuning& now) {
  nb::list list;
  for (Engine* engine : engines()) {
    if (engine->memory() != Memory::device || !engine->unavailable_reason().empty()) continue;
    auto& device = static_cast<DeviceEngine&>(*engine);
    for (const int number : device.devices_for_host_data()) add_policies(list, now, number, device.policies(number));
    add_policies(list, now, PolicyChoice::of_transfer, transfer_policies());
  }
  return list;
}

nb::dict tuning() {
  const std::shared_ptr<const Tuning> now = current_tuning();
  nb::list rates;
  if (now->rates) add_rates(rates, *now->rates);
  nb::dict entry;
  entry["origin"] = now->origin;
  entry["warning"] = now->warning;
  entry["policies"] = all_policies(*now);
  entry["rates"] = rates;
  return entry;
}

// To try the command: small texts, and one algorithm of each kind.
TunerSettings quick_settings() {
  TunerSettings settings;
  settings.device_len = std::size_t{1} << 20;
  settings.most_len = std::size_t{1} << 20;
  settings.seconds = 0;
  settings.repetitions = 1;
  settings.algorithms = {"aes-128-ctr", "aes-256-gcm", "des-ede3-ecb"};
  return settings;
}

void tune(nb::callable observe, bool quick) {
  DeviceEngine& device = usable_cuda_engine();
  Engine& cpu = find_engine("cpu");
  Tuning measured;
  {
    const GilReleased released;
    measured = measure_tuning(device, cpu, quick ? quick_settings() : TunerSettings{}, [&](const TunerNews& news) {
      const GilHeld held;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      sheltered([&] { observe(news.text, news.done); });
    });
  }
  current_tuning();  // what the cache has must not come after
  use_tuning(std::move(measured));
}

// Compute capability, multiprocessors, bytes of shared memory a block may ask for.
using MadeUpDevice = std::tuple<int, int, std::uint32_t, std::size_t>;

// With a made-up device the choices for it, as on a machine that has it and was never tuned: for tests without a GPU.
std::vector<Decision> decisions(const BatchShape& shape, int device, const std::optional<MadeUpDevice>& made_up) {
  if (!made_up) return usable_cuda_engine().explain(shape, device);
  cuda::Device facts{};
  std::string_view("made-up GPU").copy(facts.name, sizeof facts.name - 1);
  std::tie(facts.major, facts.minor, facts.multiprocessors, facts.shared_len) = *made_up;
  return cuda::explain({facts, cuda::overrides(), {}}, shape);
}

nb::tuple to_tuple(const Decision& decision) {
  nb::list candidates;
  for (const Candidate& candidate : decision.candidates) {
    candidates.append(nb::make_tuple(candidate.name, candidate.description, candidate.is_chosen, candidate.reason));
  }
  return nb::make_tuple(decision.subject, nb::tuple(candidates));
}

nb::list explain(std::string_view algorithm, bool decrypt, std::uint64_t messages, std::uint64_t size,
                 std::uint64_t keys, int device, const std::optional<MadeUpDevice>& made_up) {
  const BatchShape shape{find_algorithm(algorithm), decrypt ? Direction::decrypt : Direction::encrypt, messages, size,
                         keys};
  if (!made_up) current_tuning();  // puts the policies that were measured to use
  nb::list list;
  for (const Decision& decision : decisions(shape, device, made_up)) list.append(to_tuple(decision));
  return list;
}

}  // namespace

void bind_tuning(nb::module_& m) {
  m.def("tuning", &tuning, nb::sig("def tuning() -> dict[str, typing.Any]"),
        "The present rates and policies, and why.");
  m.def("tune", &tune, nb::arg("observe"), nb::arg("quick"),
        nb::sig("def tune(observe: typing.Callable[[str, float], object], quick: bool) -> None"),
        "Measures, and uses the results. `observe` gets each result, and the share of finished work.");
  m.def("explain", &explain, nb::arg("algorithm"), nb::arg("decrypt"), nb::arg("messages"), nb::arg("size"),
        nb::arg("keys"), nb::arg("device"), nb::arg("made_up") = nb::none(),
        nb::sig("def explain(algorithm: str, decrypt: bool, messages: int, size: int, keys: int, device: int, made_up: "
                "tuple[int, int, int, int] | None = None) -> list[tuple[str, tuple[tuple[str, str, bool, str], ...]]]"),
        "The kernels for a batch, and why. made_up: compute capability, multiprocessors, shared memory of a block.");
  m.def(
      "explain_cpu",
      [](std::string_view algorithm, bool decrypt, std::size_t size) {
        return to_tuple(
            explain_cpu(find_algorithm(algorithm), decrypt ? Direction::decrypt : Direction::encrypt, size));
      },
      nb::arg("algorithm"), nb::arg("decrypt"), nb::arg("size"),
      nb::sig("def explain_cpu(algorithm: str, decrypt: bool, size: int) -> tuple[str, tuple[tuple[str, str, bool, "
              "str], ...]]"),
      "The code of the CPU for a text, and why.");
  m.def(
      "save_tuning", [] { return save_tuning(*current_tuning()); },
      "Keeps the present rates in the cache file of this machine; returns its path.");
  m.def("forget_tuning", &forget_tuning, "Removes the cache file of this machine; False when there was none.");
}

}  // namespace warpcipher::python
