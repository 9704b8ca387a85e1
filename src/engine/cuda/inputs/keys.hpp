// SPDX-License-Identifier: Apache-2.0
// Values that the CUDA engine derives from keys, in constant time: on the host, from the key of a single message, once
// for each key; on the GPU for batches with many keys.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "core/host_device.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/stream.hpp"
#include "message/message.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

struct AesKeyState final : KeyState {
  explicit AesKeyState(const Key& key);
  ~AesKeyState() override;
  AesKeyState(const AesKeyState&) = delete;
  AesKeyState& operator=(const AesKeyState&) = delete;

  aes::Schedule schedule;   // encryption; XTS: of the key for the data
  gf128::Element hash_key;  // GCM: H
  // Round keys in the order of use, as little-endian columns.
  std::uint32_t encryption_words[60];
  std::uint32_t decryption_words[60];
  std::uint32_t tweak_words[60];  // XTS: of the key for tweaks, which encrypts in both directions

  const std::uint32_t* words(bool inverse) const { return inverse ? decryption_words : encryption_words; }
};

const AesKeyState& aes_key_state(const Key& key);

// The keys of a group, each with a number. A hash table of addresses, because a million messages may have a key each.
class KeyList {
 public:
  // The number of a key, from 0, in the order of first use.
  std::uint32_t number(const Key& key) {
    if (!keys_.empty() && keys_[last_] == &key) return last_;
    if (2 * keys_.size() >= table_.size()) grow();
    std::uint32_t& entry = table_[place_of(key)];
    if (entry == empty) {
      entry = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(&key);
    }
    return last_ = entry;
  }

  const std::vector<const Key*>& keys() const { return keys_; }

 private:
  static constexpr std::uint32_t empty = 0xffffffffu;

  // The entry of the key, or an empty entry for it.
  std::size_t place_of(const Key& key) const {
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;  // spreads addresses (Knuth, volume 3, section 6.4)
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&key) * golden_ratio;
    std::size_t place = (hash >> 32) & (table_.size() - 1);
    while (table_[place] != empty && keys_[table_[place]] != &key) place = (place + 1) & (table_.size() - 1);
    return place;
  }

  void grow() {
    table_.assign(table_.empty() ? 16 : 2 * table_.size(), empty);
    for (std::uint32_t k = 0; k < keys_.size(); ++k) table_[place_of(*keys_[k])] = k;
  }

  std::vector<std::uint32_t> table_;  // numbers; the size is a power of two
  std::vector<const Key*> keys_;
  std::uint32_t last_ = 0;
};

// AES key schedules derived on the GPU, in constant time (cipher/aes.hpp: the S-box as logic). All pointers are to
// device memory.

struct KeyExpansion {
  const std::uint8_t* keys;  // key k: key_len bytes at keys + stride k
  std::uint32_t stride;
  std::uint32_t key_len;
  std::uint32_t count;        // of keys
  bool inverse;               // for decryption (FIPS 197, section 5.3.5)
  uint4* round_keys;          // most_round_keys for each key
  gf128::Element* hash_keys;  // E(0) of each key; nullptr: not wanted
};

// AES key schedules, one in each lane.
void expand_keys(const Device& device, Stream stream, const KeyExpansion& expansion);

// The same for the second halves of XTS keys, which only encrypt (IEEE 1619, section 5.1). first_halves: the expansion
// of the first halves.
void expand_tweak_keys(const Device& device, Stream stream, const KeyExpansion& first_halves, uint4* round_keys);

// Sets *bad when the two halves of an XTS key are equal (Key::Key refuses such a key). keys: `count` keys of `key_len`
// bytes, one after another. The time does not depend on where halves differ.
void check_key_halves(const Device& device, Stream stream, const std::uint8_t* keys, std::uint32_t key_len,
                      std::uint32_t count, std::uint32_t* bad);

}  // namespace warpcipher::cuda

// The AES keys of a batch in device memory. For few keys the host has derived all that kernels need, and
// sends it. For many keys it sends only their bytes; the GPU derives the rest on request.

namespace warpcipher {
class Key;
}

namespace warpcipher::cuda {

// A lane of the GPU takes longer for a key schedule than the host took in the key's first call, and a launch takes
// longer still.
inline constexpr std::size_t most_keys_of_host = 4;

class AesKeys {
 public:
  AesKeys(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction);

  // Few keys of the host: call reserve() before `upload` is allocated, fill() after that. The caller keeps the keys
  // alive.
  void reserve(Upload& upload, std::span<const Key* const> keys);
  void fill(Upload& upload);

  // Keys whose bytes lie in device memory, one after another.
  void take_bytes(const std::uint8_t* bytes, std::uint32_t count);

  // Enqueues the derivation, unless it is done.
  void derive();

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(algorithm_.cipher.key_len / 4 + 6); }
  std::uint32_t count() const { return count_; }
  std::span<const Key* const> of_host() const { return of_host_; }  // empty: the GPU derives
  const std::uint8_t* bytes() const { return bytes_; }              // nullptr: the host has derived

  // Device memory; nullptr before derive().
  const uint4* round_keys() const { return round_keys_; }         // most_round_keys for each key
  const uint4* tweak_keys() const { return tweak_keys_; }         // XTS: likewise
  const gf128::Element* hash_keys() const { return hash_keys_; }  // GCM

 private:
  bool is_gcm() const { return algorithm_.mode.id == Mode::gcm; }
  bool is_xts() const { return algorithm_.mode.two_keys; }

  const Device& device_;
  const Stream stream_;
  const Algorithm& algorithm_;
  const bool inverse_;
  std::uint32_t count_ = 0;
  std::span<const Key* const> of_host_;
  Upload::Array<uint4> host_round_keys_{}, host_tweak_round_keys_{};
  Upload::Array<gf128::Element> host_hash_keys_{};
  const std::uint8_t* bytes_ = nullptr;
  std::unique_ptr<StreamBuffer> derived_;
  const uint4* round_keys_ = nullptr;
  const uint4* tweak_keys_ = nullptr;
  const gf128::Element* hash_keys_ = nullptr;
};

}  // namespace warpcipher::cuda

namespace warpcipher::cuda {

// Key schedules of DES as kernels read them. The GPU makes them from the bytes of the keys, one lane for each round.

// Keys in device memory, one after another.
struct DesKeys {
  const std::uint8_t* bytes;
  std::uint32_t key_len;
  std::uint32_t count;
  bool inverse;  // for decryption

  WARPCIPHER_HD std::uint32_t rounds() const { return key_len == 8 ? 16 : 48; }
};

// Key schedules in device memory, one for each key or one for each message. They are in groups of 32, as a warp reads
// them that has a message in each lane: round r (in the order of use) of schedule s is subkeys()[32 (rounds (s / 32) +
// r) + s % 32], packed as in cipher/des_bitslice.hpp.
class DesSchedules {
 public:
  // Makes a schedule for each key; or, for views of messages with several keys, a schedule for each message, in the
  // given order (nullptr: in the order of the views).
  DesSchedules(const Device& device, Stream stream, const DesKeys& keys, const MessageView* views = nullptr,
               std::uint32_t messages = 0, const std::uint32_t* order = nullptr);

  const uint2* subkeys() const { return reinterpret_cast<const uint2*>(memory_.data()); }
  std::uint32_t rounds() const { return rounds_; }
  bool of_one_key() const { return of_one_key_; }

 private:
  const std::uint32_t rounds_;
  const bool of_one_key_;
  StreamBuffer memory_;
};

}  // namespace warpcipher::cuda
