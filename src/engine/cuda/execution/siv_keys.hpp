// SPDX-License-Identifier: Apache-2.0
// The keys that AES-GCM-SIV derives for each message of a batch from its key and its nonce (RFC 8452, section 4). The
// host derives the keys of a single message, so that kernels can have them as parameters; the GPU derives those
// of many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cipher/gf128.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/inputs/aes_keys.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "message/key.hpp"

namespace warpcipher {
struct Message;
}

namespace warpcipher::cuda {

struct DeviceBatch;

class SivKeys {
 public:
  SivKeys(const Device& device, Stream stream, const Algorithm& algorithm);

  // A single message: call reserve() before `upload` is allocated, fill() after that.
  void reserve(Upload& upload, const Message& message);
  void fill(Upload& upload) { of_messages_.fill(upload); }

  // Enqueues the work before the text: the derivation, unless the host has done it; then `nonces` has the nonces, and
  // views number the keys of messages.
  void begin(const DeviceBatch& batch, Block* nonces);

  // After begin().
  const lane_table::SivMessages& messages() const { return messages_; }

  // Of encryption, a key for each message.
  AesKeys& of_messages() { return of_messages_; }
  const Key* only_key() const { return only_key_ ? &*only_key_ : nullptr; }  // that the host has derived

  // Of authentication, as GHASH takes them: one of the two.
  const gf128::Element* hash_keys() const { return hash_keys_; }  // device memory
  const gf128::Element* only_hash_key() const { return only_key_ ? &*only_hash_key_ : nullptr; }

 private:
  lane_table::SivMessages messages_{};
  AesKeys of_messages_;
  std::optional<Key> only_key_;
  const Key* list_of_key_ = nullptr;  // read by of_messages_
  Secret<gf128::Element> only_hash_key_;
  std::optional<Upload> memory_;
  const gf128::Element* hash_keys_ = nullptr;
};

// Where a kernel of aes/gcm_siv.hpp finds keys: their bytes if it takes them, else round keys, which are
// derived.
lane_table::SivKeySource source_of(AesKeys& keys, lane_table::TableLayout layout);

}  // namespace warpcipher::cuda
