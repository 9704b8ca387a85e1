// SPDX-License-Identifier: Apache-2.0
// The keys of a stream cipher's batch in device memory: their bytes, and the GPU's derivations from them and from each
// message's nonce.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

struct DeviceBatch;

class StreamKeys {
 public:
  // bytes: of the keys, one after another, in device memory.
  void take_bytes(const std::uint8_t* bytes) { bytes_ = bytes; }

  const std::uint8_t* bytes() const { return bytes_; }

  // Enqueues the derivation, unless it is done. A speculative launch tells the host of the plan, and derives in any
  // case.
  void derive(const DeviceBatch& batch, const Speculation& speculation = {});

  // Device memory, after derive(). AEADs: the halves of the one-time keys, a block for each message.
  const chacha::KeyStream* streams() const { return streams_; }
  const Block* r() const { return r_; }
  const Block* s() const { return s_; }

 private:
  const std::uint8_t* bytes_ = nullptr;
  std::optional<Upload> memory_;
  chacha::KeyStream* streams_ = nullptr;
  Block* r_ = nullptr;
  Block* s_ = nullptr;
};

// Enqueues the derivation of keys, if their own kernels take its results.
void derive_stream_keys(const DeviceBatch& batch);

// Of texts of whole blocks: enqueues the tags of ciphertexts, which are written where there are no verdicts; or the
// encryption from pieces, and the tags.
void run_stream_tags(const DeviceBatch& batch, std::uint32_t* verdicts);
void gather_stream(const DeviceBatch& batch, const chacha::TextPieces& pieces);

// Enqueues text and tags, as execute() says.
void run_stream_cipher(const DeviceBatch& batch, std::uint32_t* verdicts);

// start_text() of an AEAD. If another kernel than the one for short messages is suitable, only the keys are derived,
// and the assumption never holds.
void start_stream_cipher(const DeviceBatch& batch, std::uint32_t* verdicts, Speculation& speculation);

}  // namespace warpcipher::cuda
