// SPDX-License-Identifier: Apache-2.0
// DES key search on 512-bit vectors, where one instruction is any three-input gate. The build compiles this file with
// -mavx512f.

#if defined(__x86_64__)

#if !defined(__AVX512F__)
#error "compile this file with -mavx512f"
#endif

#include "search/cpu/des_meet_code.hpp"

namespace warpcipher::search::cpu {

using Vector [[gnu::vector_size(64)]] = std::uint64_t;

constinit const DesMeetLanes des_meet_avx512 = make_des_meet<Vector>("avx512");

}  // namespace warpcipher::search::cpu

#endif
