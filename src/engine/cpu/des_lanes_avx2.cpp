// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES on 256-bit vectors. The build compiles this file, and no other, with -mavx2.

#if defined(__x86_64__)

#if !defined(__AVX2__)
#error "compile this file with -mavx2"
#endif

#include "engine/cpu/des_lanes_code.hpp"

namespace warpcipher::cpu {

using Vector [[gnu::vector_size(32)]] = std::uint64_t;

constinit const DesLanes des_lanes_avx2 = make_des_lanes<Vector>("avx2");

}  // namespace warpcipher::cpu

#endif
