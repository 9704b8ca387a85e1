// SPDX-License-Identifier: Apache-2.0
// The keys of a stream cipher's batch in device memory: their bytes, and what the GPU derives from them and from each
// message's nonce.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

struct DeviceBatch;

class StreamKeys {
 public:
  // bytes: of the keys, one after another, in device memory.
  void take_bytes(const std::uint8_t* bytes) { bytes_ = bytes; }

  // Enqueues the derivation, unless it is done. masks: AEADs: memory of a block for each message, for the second halves
  // of the one-time keys.
  void derive(const DeviceBatch& batch, Block* masks);

  // Device memory, after derive().
  const chacha::KeyStream* streams() const { return streams_; }
  const Block* r() const { return r_; }  // AEADs

 private:
  const std::uint8_t* bytes_ = nullptr;
  std::optional<Upload> memory_;
  chacha::KeyStream* streams_ = nullptr;
  Block* r_ = nullptr;
};

// Enqueues text and tags, as execute() says.
void run_stream_cipher(const DeviceBatch& batch, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda
