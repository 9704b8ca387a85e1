// SPDX-License-Identifier: Apache-2.0
// DES key search on 128-bit vectors: SSE2 and NEON, which every 64-bit x86 and ARM processor has.

#include "search/cpu/des_meet_code.hpp"

namespace warpcipher::search::cpu {

using Vector [[gnu::vector_size(16)]] = std::uint64_t;

constinit const DesMeetLanes des_meet_baseline = make_des_meet<Vector>("baseline");

}  // namespace warpcipher::search::cpu
