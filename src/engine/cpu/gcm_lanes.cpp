// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/gcm_lanes.hpp"

#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace warpcipher::cpu {
namespace {

#if defined(__x86_64__)
// VAES and VPCLMULQDQ, which not every compiler's __builtin_cpu_supports knows by name: CPUID leaf 7, ECX.
bool has_wide_aes() {
  constexpr unsigned vaes = 1u << 9, vpclmulqdq = 1u << 10;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & (vaes | vpclmulqdq)) == (vaes | vpclmulqdq);
}
#endif

std::vector<const GcmLanes*> find_gcm_lanes() {
  std::vector<const GcmLanes*> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")) {
    if (has_wide_aes()) found.push_back(&gcm_lanes_vaes);
    found.push_back(&gcm_lanes_aesni);
  }
#endif
  return found;
}

}  // namespace

std::span<const GcmLanes* const> gcm_lanes_list() {
  static const std::vector<const GcmLanes*> list = find_gcm_lanes();
  return list;
}

}  // namespace warpcipher::cpu
