// SPDX-License-Identifier: Apache-2.0
// The end of a tag.
#pragma once

#include "engine/cuda/chacha/elements.cuh"

namespace warpcipher::cuda::chacha {

// The last block: both lengths, in bytes.
__device__ __forceinline__ Element lengths_of(const HashView& view) {
  return to_element({{static_cast<std::uint32_t>(view.aad_len), static_cast<std::uint32_t>(view.aad_len >> 32),
                      static_cast<std::uint32_t>(view.text_len), static_cast<std::uint32_t>(view.text_len >> 32)}},
                    1);
}

// Writes the tag, or compares it with the given one in constant time.
__device__ __forceinline__ void settle(const Tags& tags, std::uint32_t message, const Element& hash) {
  const Block s = tags.s[message];
  Block tag;
  poly1305::store_tag(hash, reinterpret_cast<const std::uint8_t*>(s.words), reinterpret_cast<std::uint8_t*>(tag.words));
  std::uint8_t* const given = global(tags.views[message].tag);
  if (tags.verdicts == nullptr) return store_bytes(given, 16, tag);
  const Block difference = tag ^ load_bytes(given, 16);
  tags.verdicts[message] =
      (difference.words[0] | difference.words[1] | difference.words[2] | difference.words[3]) == 0 ? 1 : 0;
}

// Writes a message part's share of the hash.
__device__ __forceinline__ void store_sum(const Tags& tags, std::uint32_t message, const Element& hash) {
  auto* const sum = reinterpret_cast<std::uint32_t*>(global(tags.views[message].tag));
#pragma unroll
  for (int i = 0; i < 5; ++i) sum[i] = hash.limbs[i];
}

}  // namespace warpcipher::cuda::chacha
