// SPDX-License-Identifier: Apache-2.0
// The list of block ciphers: everything else enumerates ciphers from here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpcipher {

enum class CipherId : std::uint8_t { aes_128, aes_192, aes_256, des, des_ede2, des_ede3 };

struct CipherInfo {
  CipherId id;
  std::string_view name;
  std::size_t key_len;    // bytes; DES keys count their parity bits, which are ignored
  std::size_t block_len;  // bytes
};

inline constexpr std::array<CipherInfo, 6> cipher_list{{
    {CipherId::aes_128, "aes-128", 16, 16},  // FIPS 197
    {CipherId::aes_192, "aes-192", 24, 16},
    {CipherId::aes_256, "aes-256", 32, 16},
    {CipherId::des, "des", 8, 8},             // FIPS 46-3
    {CipherId::des_ede2, "des-ede2", 16, 8},  // SP 800-67, two-key: K1, K2, K1
    {CipherId::des_ede3, "des-ede3", 24, 8},  // SP 800-67, three-key
}};

constexpr bool is_aes(CipherId id) {
  return id == CipherId::aes_128 || id == CipherId::aes_192 || id == CipherId::aes_256;
}

}  // namespace warpcipher
