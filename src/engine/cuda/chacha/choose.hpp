// SPDX-License-Identifier: Apache-2.0
// Which kernels take ChaCha20 and ChaCha20-Poly1305; as aes/choose.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/runtime/refusal.hpp"

namespace warpcipher::cuda {

using chacha::AeadKernel;
using chacha::StreamKernel;

// Blocks are ChaCha20's, of 64 bytes.
struct StreamWork {
  std::uint64_t messages;
  std::uint64_t blocks;       // of all messages
  std::uint64_t most_blocks;  // of one
};

// --- text ---
inline constexpr std::array stream_candidates{StreamKernel::packed, StreamKernel::tiles};
Refusal refuse(const Conditions& now, const StreamWork& work, StreamKernel kernel);
// Forcing `counter` to packed or tiles forces one.
StreamKernel choose_stream(const Conditions& now, const StreamWork& work);

// --- text and tags ---
inline constexpr std::array aead_candidates{AeadKernel::chunks, AeadKernel::lanes};
Refusal refuse(const Conditions& now, const StreamWork& work, AeadKernel kernel);
// Forcing `poly1305` forces one.
AeadKernel choose_aead(const Conditions& now, const StreamWork& work);
// Blocks of the longest message that lanes take: a longer one would be the last.
std::uint64_t longest_by_lanes(const Conditions& now, const StreamWork& work);

}  // namespace warpcipher::cuda
