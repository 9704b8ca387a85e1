// SPDX-License-Identifier: Apache-2.0
// Code for AVX2: vectors of 256 bits.

#if defined(__x86_64__)

#include "cipher/simd/256.hpp"
#include "engine/cpu/chacha_code.hpp"
#include "engine/cpu/des_code.hpp"
#include "prg/chacha_code.hpp"
#include "random/host_code.hpp"
#include "search/cpu/des_meet_code.hpp"

namespace warpcipher {

using simd::Simd256;

constinit const cpu::Lanes cpu::Lanes::avx2{
    .name = "avx2", .chacha = &chacha_lanes<Simd256>, .des = &des_lanes<Simd256>};
constinit const search::cpu::Lanes search::cpu::Lanes::avx2{.name = "avx2", .des = &des_meet<Simd256>};
constinit const random::HostCode random::host_avx2{"avx2", fill_part};
constinit const prg::Lanes prg::Lanes::avx2{.name = "avx2", .chacha = &chacha_lanes, .accumulate = &prg::accumulate};

}  // namespace warpcipher

#endif
