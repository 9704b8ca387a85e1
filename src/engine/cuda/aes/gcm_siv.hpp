// SPDX-License-Identifier: Apache-2.0
// The blocks that AES-GCM-SIV encrypts in addition to the text of a message (RFC 8452, section 4): those that give its
// keys, and the one that gives its tag. A lane a message. All pointers are to device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/hash_view.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

// Keys by number: round keys, or bytes of which the kernels make them.
struct SivKeySource {
  std::uint32_t rounds;
  const uint4* round_keys;    // most_round_keys for each key
  const std::uint8_t* bytes;  // not nullptr: keys of 128 bits one after another, by tables_128; round_keys is not read
};

struct SivMessages {
  MessageView* views;
  const HashView* hash_views;
  std::uint32_t count;
  Block* nonces;  // of each message, and zeros
};

struct SivDerivedKeys {
  std::uint8_t* encryption;        // as many bytes for each message as its key has
  gf128::Element* authentication;  // GHASH's key for POLYVAL's
};

// The keys of each message from its nonce, views[i].start, and the key views[i].key.
void derive_siv_keys(const Device& device, Stream stream, TableLayout layout, const SivMessages& messages,
                     const SivKeySource& keys, const SivDerivedKeys& derived);

// Once keys are derived: moves the nonces to messages.nonces, and makes views[i].key i. Decryption: views[i].start
// becomes the first counter. GivenTag: where the tag lies that came with the text.
enum class GivenTag : std::uint8_t {
  none,  // encryption
  tag,   // at HashView::tag
  mask,  // in HashView::mask
};
void begin_siv_messages(const Device& device, Stream stream, const SivMessages& messages, GivenTag given);

// Tags from the hashes of messages, under key i for message i. encrypting: writes the tag, and views[i].start becomes
// the first counter. Else writes the tag that the text should have; or, with verdicts, compares the given one in
// constant time, and sets verdicts[i] to 1 if they match, else to 0.
void finish_siv_tags(const Device& device, Stream stream, TableLayout layout, const SivMessages& messages,
                     const SivKeySource& keys, const Block* hashes, bool encrypting, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::lane_table
