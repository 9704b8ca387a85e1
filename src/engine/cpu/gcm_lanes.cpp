// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/gcm_lanes.hpp"

#include <vector>

#include "core/fork.hpp"
#include "core/processor.hpp"

namespace warpcipher::cpu {
namespace {

std::vector<const GcmLanes*> find_gcm_lanes() {
  std::vector<const GcmLanes*> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")) {
    const bool has_wide = has_vaes() && has_vpclmulqdq();
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (has_wide && has_avx512) found.push_back(&gcm_lanes_vaes512);
    if (has_wide && __builtin_cpu_supports("avx2")) found.push_back(&gcm_lanes_vaes);
    found.push_back(&gcm_lanes_aesni);
  }
#endif
  return found;
}

}  // namespace

std::span<const GcmLanes* const> gcm_lanes_list() {
  static constinit FirstUse<std::vector<const GcmLanes*>> list;
  return list.get(find_gcm_lanes);
}

}  // namespace warpcipher::cpu
