// SPDX-License-Identifier: Apache-2.0
// The four T-boxes of the papers, AES by them on one CPU thread, with which the papers compare their GPUs, and of
// kernels a column of AES and counter blocks as such columns.
//
// Timing: lookups in the CPU's cache take a time that depends on keys and data. Not constant time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "cipher/aes_tables.hpp"
#include "core/wipe.hpp"
#include "gpu.cuh"
#include "lab.hpp"

namespace warpcipher::lab {

// T-box r is row r's contribution to its column, in the layout of cipher/aes_tables.hpp.
using Tables = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Tables make_tables(const std::array<std::uint32_t, 256>& first) {
  Tables tables{};
  for (std::size_t x = 0; x < 256; ++x) {
    std::uint32_t word = first[x];
    for (std::size_t r = 0; r < 4; ++r) {
      tables[r][x] = word;
      word = word << 8 | word >> 24;
    }
  }
  return tables;
}

inline constexpr Tables encryption_tables = make_tables(aes::te0);
inline constexpr Tables decryption_tables = make_tables(aes::td0);

// Round keys as columns, in the order they are added. Wiped by its owner.
struct RoundKeys {
  std::uint32_t words[60];
  int rounds;
};

// key: 16, 24 or 32 bytes. Of decryption: the keys of the equivalent inverse cipher (FIPS 197, section 5.3.5).
inline Secret<RoundKeys> expand_key(std::span<const std::uint8_t> key, bool decrypt = false) {
  const Secret schedule(decrypt ? aes::expand_decryption_key(key.data(), key.size())
                                : aes::expand_key(key.data(), key.size()));
  Secret<RoundKeys> keys;
  aes::to_column_words(*schedule, keys->words);
  keys->rounds = schedule->rounds;
  return keys;
}

// A block of one direction, in and out: 16 bytes, which may be the same. keys: of that direction.
template <bool Decrypt>
inline void crypt_block(const RoundKeys& keys, const std::uint8_t* in, std::uint8_t* out) {
  constexpr unsigned step = Decrypt ? 3 : 1;  // columns from one row to the next: ShiftRows, or its inverse
  constexpr const Tables& tables = Decrypt ? decryption_tables : encryption_tables;
  constexpr const std::array<std::uint8_t, 256>& sbox = Decrypt ? aes::inverse_sbox : aes::sbox;
  std::uint32_t s[4];
  std::uint32_t t[4];
  std::memcpy(s, in, 16);
  const std::uint32_t* key = keys.words;
  for (unsigned c = 0; c < 4; ++c) s[c] ^= *key++;
  for (int round = 1; round < keys.rounds; ++round) {
    for (unsigned c = 0; c < 4; ++c) {
      t[c] = tables[0][s[c] & 0xff] ^ tables[1][s[(c + step) % 4] >> 8 & 0xff] ^
             tables[2][s[(c + 2) % 4] >> 16 & 0xff] ^ tables[3][s[(c + 3 * step) % 4] >> 24] ^ *key++;
    }
    std::memcpy(s, t, 16);
  }
  for (unsigned c = 0; c < 4; ++c) {
    t[c] = std::uint32_t{sbox[s[c] & 0xff]} ^ std::uint32_t{sbox[s[(c + step) % 4] >> 8 & 0xff]} << 8 ^
           std::uint32_t{sbox[s[(c + 2) % 4] >> 16 & 0xff]} << 16 ^
           std::uint32_t{sbox[s[(c + 3 * step) % 4] >> 24]} << 24 ^ *key++;
  }
  std::memcpy(out, t, 16);
}

// Round keys of AES-128 in ECB.
template <bool Decrypt>
Secret<RoundKeys> ecb_keys(const Setting& setting) {
  check_len("key", setting.key.size(), {16});
  check_len("iv", setting.iv.size(), {0});
  return expand_key(setting.key, Decrypt);
}

// AES-128 in ECB on one CPU thread.
template <bool Decrypt>
Job one_thread_ecb(const Setting& setting) {
  return host_job([keys = ecb_keys<Decrypt>(setting)](const Data& data) {
    check_blocks(data);
    for (std::size_t i = 0; i < data.in_len; i += 16) crypt_block<Decrypt>(*keys, data.in + i, data.out + i);
  });
}

// ---- on a GPU, wherever the T-boxes lie. Boxes: at<R>(x) is T-box R at byte x ---------------------------------------

#if WARPCIPHER_HAS_CUDA

// Four T-boxes, one behind the other in `words`, or one and rotations.
template <class Words, unsigned Count>
struct Boxes {
  Words words;

  template <unsigned R>
  __device__ __forceinline__ std::uint32_t at(std::uint32_t x) const {
    const std::uint32_t word = words[(Count == 4 ? 256 * R : 0) + x];
    return Count == 4 || R == 0 ? word : __funnelshift_l(word, word, 8 * R);
  }
};

// Of a round but the last: row r of the column comes from c<r>.
template <class Boxes>
__device__ __forceinline__ std::uint32_t middle_column(const Boxes& boxes, std::uint32_t c0, std::uint32_t c1,
                                                       std::uint32_t c2, std::uint32_t c3, std::uint32_t key) {
  return boxes.template at<0>(c0 & 0xff) ^ boxes.template at<1>(c1 >> 8 & 0xff) ^
         boxes.template at<2>(c2 >> 16 & 0xff) ^ boxes.template at<3>(c3 >> 24) ^ key;
}

// Of the last round of encryption. A T-box holds the S-box too: T2, T3, T0 and T1 in bytes 0 to 3.
template <class Boxes>
__device__ __forceinline__ std::uint32_t last_column(const Boxes& boxes, std::uint32_t c0, std::uint32_t c1,
                                                     std::uint32_t c2, std::uint32_t c3, std::uint32_t key) {
  return (boxes.template at<2>(c0 & 0xff) & 0xffu) ^ (boxes.template at<3>(c1 >> 8 & 0xff) & 0xff00u) ^
         (boxes.template at<0>(c2 >> 16 & 0xff) & 0xff0000u) ^ (boxes.template at<1>(c3 >> 24) & 0xff000000u) ^ key;
}

// A block of AES-128 by one thread. Keys: keys(i) is word i of the round keys.
template <class Boxes, class Keys>
__device__ __forceinline__ uint4 encrypt_state(const Boxes& boxes, const Keys& keys, const uint4& text) {
  constexpr unsigned rounds = 10;
  std::uint32_t s[4] = {text.x ^ keys(0), text.y ^ keys(1), text.z ^ keys(2), text.w ^ keys(3)};
#pragma unroll
  for (unsigned round = 1; round <= rounds; ++round) {
    std::uint32_t t[4];
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) {
      const std::uint32_t key = keys(4 * round + c);
      t[c] = round < rounds ? middle_column(boxes, s[c], s[(c + 1) % 4], s[(c + 2) % 4], s[(c + 3) % 4], key)
                            : last_column(boxes, s[c], s[(c + 1) % 4], s[(c + 2) % 4], s[(c + 3) % 4], key);
    }
#pragma unroll
    for (unsigned c = 0; c < 4; ++c) s[c] = t[c];
  }
  return make_uint4(s[0], s[1], s[2], s[3]);
}

// The block `distance` blocks after `counter`: a big-endian number of 128 bits that wraps. Both are columns in
// the layout of cipher/aes_tables.hpp.
__device__ __forceinline__ uint4 counter_behind(const std::uint32_t (&counter)[4], std::uint64_t distance) {
  const auto swap = [](std::uint32_t x) { return __byte_perm(x, 0, 0x0123); };
  const std::uint64_t before = std::uint64_t{swap(counter[2])} << 32 | swap(counter[3]);
  const std::uint64_t low = before + distance;
  const std::uint64_t high =
      (std::uint64_t{swap(counter[0])} << 32 | swap(counter[1])) + (low < before ? std::uint64_t{1} : 0);
  return make_uint4(swap(static_cast<std::uint32_t>(high >> 32)), swap(static_cast<std::uint32_t>(high)),
                    swap(static_cast<std::uint32_t>(low >> 32)), swap(static_cast<std::uint32_t>(low)));
}

__device__ __forceinline__ uint4 sum(const uint4& a, const uint4& b) {
  return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

#endif

}  // namespace warpcipher::lab
