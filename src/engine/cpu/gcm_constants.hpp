// SPDX-License-Identifier: Apache-2.0
// What the CPU engine derives from a GCM key to split long messages and to hash long IVs.
#pragma once

#include <cstdint>
#include <functional>

#include "cipher/gf128.hpp"

namespace warpcipher {

struct GcmConstants {
  gf128::Element hash_key;        // H = E(0): SP 800-38D, section 7.1, step 1
  gf128::Element inverse;         // 1 / H
  gf128::Element tile_power;      // H to the power cpu_tile_units
  gf128::Element hash_only_mask;  // E(J0) for the IV of 12 zero bytes, under which GMAC serves as plain GHASH
};

// `encrypt` is E, of one block under the key.
GcmConstants make_gcm_constants(const std::function<gf128::Element(gf128::Element)>& encrypt);

// The block [first] || [second], lengths in bits, that ends each input of GHASH; given in bytes.
gf128::Element length_block(std::uint64_t first_bytes, std::uint64_t second_bytes);

// The 16-byte IV from which section 7.1, step 2 makes the counter block J0:  J0 = (IV H + [0] || [128]) H. With H = 0,
// which one key in 2^128 has, only J0 = 0 has one.
gf128::Element solve_iv(const GcmConstants& constants, gf128::Element counter0);

// inc32 (section 6.2), n times.
gf128::Element advance_counter(gf128::Element counter, std::uint64_t n);

}  // namespace warpcipher
