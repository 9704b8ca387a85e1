// SPDX-License-Identifier: Apache-2.0
// Code for AES instructions and carry-less products on vectors of 128 bits, in the three-operand forms of AVX.

#if defined(__x86_64__)

#include "cipher/simd/128.hpp"
#include "engine/cpu/aes_code.hpp"
#include "engine/cpu/aes_serial_code.hpp"
#include "engine/cpu/gcm_code.hpp"
#include "prg/aes_code.hpp"
#include "search/cpu/aes_code.hpp"

namespace warpcipher {

using simd::Simd128;

constinit const cpu::Lanes cpu::Lanes::aesni{
    .name = "aesni", .aes = &aes_lanes<Simd128>, .serial = &serial_aes, .gcm = &gcm_lanes<Simd128>};
constinit const search::cpu::Lanes search::cpu::Lanes::aesni{.name = "aesni", .aes = &aes_search<Simd128>};
constinit const prg::Lanes prg::Lanes::aesni{.name = "aesni", .aes = &aes_lanes<Simd128>};

}  // namespace warpcipher

#endif
