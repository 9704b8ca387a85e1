// SPDX-License-Identifier: Apache-2.0
// Selects the SIMD variants that this processor supports.
#include <vector>

#include "core/fork.hpp"
#include "core/processor.hpp"
#include "engine/cpu/aes_lanes.hpp"
#include "engine/cpu/chacha_lanes.hpp"
#include "engine/cpu/gcm_lanes.hpp"

namespace warpcipher::cpu {
namespace {

#if defined(__x86_64__)
template <class Lanes>
std::vector<const Lanes*> find(const Lanes& aesni, const Lanes& vaes, const Lanes& vaes512) {
  std::vector<const Lanes*> found;
  if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")) {
    const bool has_wide = has_vaes() && has_vpclmulqdq();
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (has_wide && has_avx512) found.push_back(&vaes512);
    if (has_wide && __builtin_cpu_supports("avx2")) found.push_back(&vaes);
    found.push_back(&aesni);
  }
  return found;
}
#endif

}  // namespace

std::span<const GcmLanes* const> gcm_lanes_list() {
  static constinit FirstUse<std::vector<const GcmLanes*>> list;
#if defined(__x86_64__)
  return list.get([] { return find(gcm_lanes_aesni, gcm_lanes_vaes, gcm_lanes_vaes512); });
#else
  return list.get();
#endif
}

std::span<const AesLanes* const> aes_lanes_list() {
  static constinit FirstUse<std::vector<const AesLanes*>> list;
#if defined(__x86_64__)
  return list.get([] { return find(aes_lanes_aesni, aes_lanes_vaes, aes_lanes_vaes512); });
#else
  return list.get();
#endif
}

std::span<const ChaChaLanes* const> chacha_lanes_list() {
  static constinit FirstUse<std::vector<const ChaChaLanes*>> list;
  return list.get([] {
    std::vector<const ChaChaLanes*> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2")) {
      if (__builtin_cpu_supports("avx512f")) found.push_back(&chacha_lanes_avx512);
      if (__builtin_cpu_supports("avx2")) found.push_back(&chacha_lanes_avx2);
    }
#endif
    found.push_back(&chacha_lanes_baseline);
    return found;
  });
}

}  // namespace warpcipher::cpu
