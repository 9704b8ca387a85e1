// SPDX-License-Identifier: Apache-2.0
#include "core/processor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace warpcipher {
namespace {

// CPUID, leaf 7, ECX: Intel, Software Developer's Manual, volume 2, CPUID.
bool has_feature([[maybe_unused]] unsigned bit) {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> bit & 1u) != 0;
#else
  return false;
#endif
}

}  // namespace

bool has_vaes() { return has_feature(9); }
bool has_vpclmulqdq() { return has_feature(10); }

}  // namespace warpcipher
