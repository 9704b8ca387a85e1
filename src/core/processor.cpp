// SPDX-License-Identifier: Apache-2.0
#include "core/processor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace warpcipher {

#if defined(__x86_64__)
namespace {

// CPUID, leaf 7, ECX (Intel, Software Developer's Manual, volume 2): VAES and VPCLMULQDQ, which not every compiler's
// __builtin_cpu_supports knows.
bool has_wide_aes() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 9 & 1u) != 0 && (ecx >> 10 & 1u) != 0;
}

}  // namespace
#endif

bool has_instruction_set(std::string_view name) {
#if defined(__x86_64__)
  const bool has_aes =
      __builtin_cpu_supports("avx") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (name == "avx2") {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  }
  if (name == "avx512") return has_avx512 && __builtin_cpu_supports("bmi2");
  if (name == "aesni") return has_aes;
  if (name == "vaes") return has_aes && has_wide_aes() && __builtin_cpu_supports("avx2");
  if (name == "vaes512") return has_aes && has_wide_aes() && has_avx512;
#endif
  return name == "baseline";
}

}  // namespace warpcipher
