// SPDX-License-Identifier: Apache-2.0
// The counter block that a GCM message begins with, for engines that compute it on the host. gcm.hpp has it as the
// standard writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "mode/limits.hpp"

namespace warpcipher {

// J0 (SP 800-38D, section 7.1, step 2). hash_key() gives H; it is called only where the IV has to be hashed.
template <class HashKey>
gf128::Element gcm_first_counter(const std::uint8_t* iv, std::size_t iv_len, HashKey&& hash_key) {
  if (iv_len == gcm_plain_iv_len) return {load_be64(iv), std::uint64_t{load_be32(iv + 8)} << 32 | 1};
  const gf128::Element h = hash_key();
  gf128::Element hash = gf128::ghash({}, h, iv, iv_len / 16);
  if (iv_len % 16 != 0) {
    std::uint8_t last[16] = {};
    std::memcpy(last, iv + iv_len / 16 * 16, iv_len % 16);
    hash = gf128::ghash(hash, h, last, 1);
  }
  return gf128::gcm_multiply(gf128::add(hash, {0, 8 * std::uint64_t{iv_len}}), h);
}

}  // namespace warpcipher
