// SPDX-License-Identifier: Apache-2.0
// Bitsliced DES on 128-bit vectors: SSE2 and NEON, which every 64-bit x86 and ARM processor has.

#include "engine/cpu/des_lanes_code.hpp"

namespace warpcipher::cpu {

using Vector [[gnu::vector_size(16)]] = std::uint64_t;

constinit const DesLanes des_lanes_baseline = make_des_lanes<Vector>("baseline");

}  // namespace warpcipher::cpu
