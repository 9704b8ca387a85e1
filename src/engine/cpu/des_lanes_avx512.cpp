// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES on 512-bit vectors, where one instruction is any three-input gate. The build compiles this file, and
// no other, with -mavx512f.

#if defined(__x86_64__)

#if !defined(__AVX512F__)
#error "compile this file with -mavx512f"
#endif

#include "engine/cpu/des_lanes_code.hpp"

namespace warpcipher::cpu {

using Vector [[gnu::vector_size(64)]] = std::uint64_t;

constinit const DesLanes des_lanes_avx512 = make_des_lanes<Vector>("avx512");

}  // namespace warpcipher::cpu

#endif
