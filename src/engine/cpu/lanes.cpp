// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/lanes.hpp"

#include "core/fork.hpp"
#include "core/processor.hpp"

namespace warpcipher::cpu {
namespace {

// The fastest first.
constexpr const Lanes* all[] = {
#if defined(__x86_64__)
    &lanes_vaes512, &lanes_vaes, &lanes_aesni, &lanes_avx512, &lanes_avx2,
#endif
    &lanes_baseline};

template <auto Family>
auto list() {
  static constinit FirstUse<decltype(runnable<Family>(std::span(all)))> found;
  return std::span(found.get([] { return runnable<Family>(std::span(all)); }));
}

}  // namespace

std::span<const AesLanes* const> aes_lanes_list() { return list<&Lanes::aes>(); }
std::span<const GcmLanes* const> gcm_lanes_list() { return list<&Lanes::gcm>(); }
std::span<const ChaChaLanes* const> chacha_lanes_list() { return list<&Lanes::chacha>(); }
std::span<const DesLanes* const> des_lanes_list() { return list<&Lanes::des>(); }

const SerialCode* serial_code() {
  const auto found = list<&Lanes::serial>();
  return found.empty() ? nullptr : found.front();
}

}  // namespace warpcipher::cpu
