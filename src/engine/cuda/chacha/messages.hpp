// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 of many messages in one kernel: AeadKernel::lanes.
#pragma once

#include <cstdint>

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::chacha {

struct Messages {
  const MessageView* views;
  const HashView* hash_views;
  const std::uint8_t* keys;  // 32 bytes each, one after another, at any address
  std::uint32_t messages;
  NonceForm form;
  std::uint32_t* verdicts;  // nullptr: tags are written. Else 1 if the tag matches, or 0
};

// Texts and tags. Where a verdict is 0, the text is zeros: it has been decrypted by then, and is wiped before the
// kernel ends. blocks: ChaCha20's, of all messages, or about as many.
void run_messages(const Device& device, Stream stream, const Messages& messages, std::uint64_t blocks, bool encrypting,
                  const Speculation& speculation);

}  // namespace warpcipher::cuda::chacha
