// SPDX-License-Identifier: Apache-2.0
// DES and triple DES on the CPU, in constant time: many blocks at once, bitsliced, on the widest vectors that the
// processor has. libcrypto's DES looks secret values up in tables, so no DES mode of this engine uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cipher/des_bitslice.hpp"
#include "core/wipe.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher::cpu {

// One key and direction, for independent blocks: ECB, decryption of CBC and CFB. Wiped when freed.
class DesSchedule {
 public:
  // key: 8 bytes (DES), 16 (triple DES, K3 = K1) or 24; parity bits are ignored. Throws Error{invalid_argument} for
  // other lengths.
  DesSchedule(const std::uint8_t* key, std::size_t key_len, bool decrypt,
              const DesLanes& code = *des_lanes_list().front());

  // How many blocks run at once. Fewer cost as much, so hand over multiples if there is a choice.
  std::size_t lanes() const noexcept { return code_->lanes; }

  // ECB over `blocks` blocks of 8 bytes; in and out the same buffer or disjoint. Safe from any thread.
  void transform_ecb(const std::uint8_t* in, std::uint8_t* out, std::size_t blocks) const;

 private:
  struct Masks {
    std::uint64_t words[3 * des::bitslice::schedule_bits];
  };

  const DesLanes* code_;
  int passes_;
  Secret<Masks> masks_;
};

// A key for each block, all of one key length and direction: one step of many messages whose mode is serial (CBC and
// CFB encryption, OFB). Wiped when freed.
class DesKeyedLanes {
 public:
  // keys: `count` pointers to key_len bytes each (8, 16 or 24), not kept. Throws Error{invalid_argument} for other
  // lengths.
  DesKeyedLanes(const std::uint8_t* const* keys, std::size_t count, std::size_t key_len, bool decrypt,
                const DesLanes& code = *des_lanes_list().front());

  std::size_t count() const noexcept { return count_; }
  std::size_t lanes() const noexcept { return code_->lanes; }

  // Block i under key i, for the first `blocks` keys; the cost is for whole groups of lanes(). in, out: `blocks`
  // blocks of 8 bytes, the same buffer or disjoint. Throws Error{invalid_argument} when blocks > count(). Safe from
  // any thread.
  void transform(const std::uint8_t* in, std::uint8_t* out, std::size_t blocks) const;

 private:
  struct Free {
    std::size_t size;
    void operator()(std::uint8_t* planes) const noexcept;
  };

  const DesLanes* code_;
  std::size_t count_;
  int passes_;
  const std::uint8_t* indices_;
  std::unique_ptr<std::uint8_t[], Free> planes_;  // for each group, for each pass: 64 words of `lanes` bits
};

}  // namespace warpcipher::cpu
