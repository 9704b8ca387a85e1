// SPDX-License-Identifier: Apache-2.0
// The end of a tag.
#pragma once

#include "engine/cuda/chacha/elements.cuh"

namespace warpcipher::cuda::chacha {

// The last block: both lengths, in bytes.
__device__ __forceinline__ Block lengths_of(const HashView& view) {
  return {{static_cast<std::uint32_t>(view.aad_len), static_cast<std::uint32_t>(view.aad_len >> 32),
           static_cast<std::uint32_t>(view.text_len), static_cast<std::uint32_t>(view.text_len >> 32)}};
}

// Writes the tag, or compares it with the given one in constant time.
__device__ __forceinline__ void settle(const Tags& tags, std::uint32_t message, const Block& tag) {
  std::uint8_t* const given = global(tags.views[message].tag);
  const bool aligned = reinterpret_cast<std::uintptr_t>(given) % 16 == 0;
  if (tags.verdicts == nullptr) return aligned ? store_aligned(given, tag) : store_bytes(given, 16, tag);
  const Block difference = tag ^ (aligned ? load_aligned(given) : load_bytes(given, 16));
  tags.verdicts[message] =
      (difference.words[0] | difference.words[1] | difference.words[2] | difference.words[3]) == 0 ? 1 : 0;
}

__device__ __forceinline__ void settle(const Tags& tags, std::uint32_t message, const Element& hash) {
  const Block s = tags.s[message];
  Block tag;
  poly1305::store_tag(hash, reinterpret_cast<const std::uint8_t*>(s.words), reinterpret_cast<std::uint8_t*>(tag.words));
  settle(tags, message, tag);
}

}  // namespace warpcipher::cuda::chacha
