// SPDX-License-Identifier: Apache-2.0
// DES key search on 256-bit vectors. The build compiles this file with -mavx2.

#if defined(__x86_64__)

#if !defined(__AVX2__)
#error "compile this file with -mavx2"
#endif

#include "search/cpu/des_meet_code.hpp"

namespace warpcipher::search::cpu {

using Vector [[gnu::vector_size(32)]] = std::uint64_t;

constinit const DesMeetLanes des_meet_avx2 = make_des_meet<Vector>("avx2");

}  // namespace warpcipher::search::cpu

#endif
