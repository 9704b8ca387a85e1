// SPDX-License-Identifier: Apache-2.0
// Code for AVX-512: vectors of 512 bits.

#if defined(__x86_64__)

#include "cipher/simd/512.hpp"
#include "engine/cpu/chacha_code.hpp"
#include "engine/cpu/des_code.hpp"
#include "prg/chacha_code.hpp"
#include "search/cpu/des_meet_code.hpp"

namespace warpcipher {

using simd::Simd512;

constinit const cpu::Lanes cpu::Lanes::avx512{
    .name = "avx512", .chacha = &chacha_lanes<Simd512>, .des = &des_lanes<Simd512>};
constinit const search::cpu::Lanes search::cpu::Lanes::avx512{.name = "avx512", .des = &des_meet<Simd512>};
constinit const prg::Lanes prg::Lanes::avx512{
    .name = "avx512", .chacha = &chacha_lanes, .accumulate = &prg::accumulate};

}  // namespace warpcipher

#endif
