// SPDX-License-Identifier: Apache-2.0
// Arrays in host memory, on vectors of 256 bits. The build compiles this file, and no other, with -mavx2 -mfma.

#if defined(__x86_64__)

#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this file with -mavx2 -mfma"
#endif

#include "random/host_code.hpp"

namespace warpcipher::random {

void fill_part_fma(const HostFill& fill, const Lines& lines, std::uint64_t begin, std::uint64_t end) {
  visit(fill.distribution, PartFunction{fill, lines, begin, end});
}

}  // namespace warpcipher::random

#endif
