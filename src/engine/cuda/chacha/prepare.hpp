// SPDX-License-Identifier: Apache-2.0
// What the GPU derives from the key and the nonce of each message, a lane a message.
#pragma once

#include <cstdint>

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::chacha {

struct Preparation {
  const MessageView* views;
  const HashView* hash_views;  // NonceForm::extended, and parts of messages
  const std::uint8_t* keys;    // 32 bytes each, one after another, at any address
  std::uint32_t messages;
  NonceForm form;
  bool are_parts;      // Message::is_part
  KeyStream* streams;  // of each message, to be written
  Block* r;            // AEADs: the halves of its one-time key (RFC 8439, section 2.6); or nullptr
  Block* s;
};

// XChaCha20: by HChaCha20 first. A speculative launch prepares whatever the summary says.
void prepare(const Device& device, Stream stream, const Preparation& preparation, const Speculation& speculation);

// The powers of each r.
void make_factors(const Device& device, Stream stream, const Block* r, const Factors& factors);

}  // namespace warpcipher::cuda::chacha
