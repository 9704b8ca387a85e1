// SPDX-License-Identifier: Apache-2.0
// The lists of algorithms and engines, and the key derivation that file formats need.

#include "bind.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/hkdf.hpp"
#include "engine/engine.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

const char* iv_rule_name(IvRule rule) {
  switch (rule) {
    case IvRule::none:
      return "none";
    case IvRule::block:
      return "block";
    case IvRule::any:
      return "any";
    case IvRule::fixed:
      return "fixed";
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

}  // namespace warpcipher::python
