// SPDX-License-Identifier: Apache-2.0
// Code for AES instructions and carry-less products on vectors of 512 bits.

#if defined(__x86_64__)

#include "cipher/simd/512.hpp"
#include "engine/cpu/aes_code.hpp"
#include "engine/cpu/gcm_code.hpp"
#include "prg/aes_code.hpp"
#include "search/cpu/aes_code.hpp"

namespace warpcipher {

using simd::Simd512;

constinit const cpu::Lanes cpu::Lanes::vaes512{
    .name = "vaes512", .aes = &aes_lanes<Simd512>, .gcm = &gcm_lanes<Simd512>};
constinit const search::cpu::Lanes search::cpu::Lanes::vaes512{.name = "vaes512", .aes = &aes_search<Simd512>};
constinit const prg::Lanes prg::Lanes::vaes512{.name = "vaes512", .aes = &aes_lanes<Simd512>};

}  // namespace warpcipher

#endif
