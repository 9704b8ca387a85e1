// SPDX-License-Identifier: Apache-2.0
// The lists of block ciphers and of stream ciphers: everything else enumerates ciphers from here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpcipher {

enum class CipherId : std::uint8_t { aes_128, aes_192, aes_256, des, des_ede2, des_ede3, chacha20, xchacha20 };

struct CipherInfo {
  CipherId id;
  std::string_view name;
  std::size_t key_len;        // bytes; DES keys count their parity bits, which are ignored
  std::size_t block_len;      // bytes; of a stream cipher: key stream that one call makes
  std::size_t nonce_len = 0;  // of a stream cipher
};

inline constexpr std::array<CipherInfo, 6> cipher_list{{
    {CipherId::aes_128, "aes-128", 16, 16},  // FIPS 197
    {CipherId::aes_192, "aes-192", 24, 16},
    {CipherId::aes_256, "aes-256", 32, 16},
    {CipherId::des, "des", 8, 8},             // FIPS 46-3
    {CipherId::des_ede2, "des-ede2", 16, 8},  // SP 800-67, two-key: K1, K2, K1
    {CipherId::des_ede3, "des-ede3", 24, 8},  // SP 800-67, three-key
}};

inline constexpr std::array<CipherInfo, 2> stream_cipher_list{{
    {CipherId::chacha20, "chacha20", 32, 64, 12},    // RFC 8439
    {CipherId::xchacha20, "xchacha20", 32, 64, 24},  // draft-irtf-cfrg-xchacha-03: ChaCha20 with nonces of 24 bytes
}};

inline constexpr std::size_t cipher_count = cipher_list.size() + stream_cipher_list.size();

constexpr bool is_aes(CipherId id) {
  return id == CipherId::aes_128 || id == CipherId::aes_192 || id == CipherId::aes_256;
}

// They make a key stream by themselves: no mode of operation applies to them.
constexpr bool is_stream_cipher(CipherId id) { return id == CipherId::chacha20 || id == CipherId::xchacha20; }

// DES and triple DES.
constexpr bool is_des(CipherId id) { return !is_aes(id) && !is_stream_cipher(id); }

}  // namespace warpcipher
