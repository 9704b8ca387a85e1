// SPDX-License-Identifier: Apache-2.0
// Code for AES instructions and carry-less products on vectors of 256 bits.

#if defined(__x86_64__)

#include "cipher/simd/256.hpp"
#include "engine/cpu/aes_code.hpp"
#include "engine/cpu/gcm_code.hpp"
#include "prg/aes_code.hpp"
#include "search/cpu/aes_code.hpp"

namespace warpcipher {

using simd::Simd256;

constinit const cpu::Lanes cpu::Lanes::vaes{.name = "vaes", .aes = &aes_lanes<Simd256>, .gcm = &gcm_lanes<Simd256>};
constinit const search::cpu::Lanes search::cpu::Lanes::vaes{.name = "vaes", .aes = &aes_search<Simd256>};
constinit const prg::Lanes prg::Lanes::vaes{.name = "vaes", .aes = &aes_lanes<Simd256>};

}  // namespace warpcipher

#endif
