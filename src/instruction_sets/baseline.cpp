// SPDX-License-Identifier: Apache-2.0
// Code for every processor, on vectors of 128 bits: SSE2 or NEON.
#include "cipher/simd/128.hpp"
#include "engine/cpu/chacha_code.hpp"
#include "engine/cpu/des_code.hpp"
#include "prg/chacha_code.hpp"
#include "random/host_code.hpp"
#include "search/cpu/des_meet_code.hpp"

namespace warpcipher {

using simd::Simd128;

constinit const cpu::Lanes cpu::Lanes::baseline{
    .name = "baseline", .chacha = &chacha_lanes<Simd128>, .des = &des_lanes<Simd128>};
constinit const search::cpu::Lanes search::cpu::Lanes::baseline{.name = "baseline", .des = &des_meet<Simd128>};
constinit const random::HostCode random::host_baseline{"baseline", fill_part};
constinit const prg::Lanes prg::Lanes::baseline{
    .name = "baseline", .chacha = &chacha_lanes, .accumulate = &prg::accumulate};

}  // namespace warpcipher
