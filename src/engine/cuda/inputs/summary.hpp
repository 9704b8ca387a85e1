// SPDX-License-Identifier: Apache-2.0
// The plan of a columnar batch, made on the GPU: the work of src/dispatch/run.cpp, check_messages() and make_plan()
// on the host. A batch passes here only if it would pass there. A correct batch may be refused if its outputs are not
// in the order of its messages.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

// Columns as kernels read them: all arrays, in and out included, are in device memory.
struct ColumnView {
  const std::uint64_t* in_lengths;   // nullptr: in_len_of_all
  const std::uint64_t* in_offsets;   // nullptr: back to back
  const std::uint64_t* out_offsets;  // likewise
  const std::uint32_t* key_index;    // nullptr: key 0
  const std::uint8_t* ivs;
  const std::uint8_t* aad;
  const std::uint64_t* aad_offsets;  // nullptr: all of aad, for every message
  const std::uint64_t* aad_lengths;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint64_t in_len;
  std::uint64_t out_len;
  std::uint64_t aad_len;
  std::uint64_t in_len_of_all;   // of each message, if there are no in_lengths
  std::uint64_t least_text_len;  // of a message
  std::uint64_t most_text_len;
  std::uint64_t most_aad_len;
  std::uint64_t chunk_blocks;   // AEADs: of their hash
  std::uint64_t least_chunked;  // GCM: shorter messages, in blocks of their hash, have no chunks
  std::uint32_t count;
  std::uint32_t keys;
  std::uint32_t tag_len;
  std::uint32_t iv_len;     // 0, 8, 16; AEADs: 12 or 24
  std::uint32_t block_log;  // log2 of a block's bytes: 4, 3 for DES, 6 for ChaCha20
  std::uint32_t unit_log;   // the same, or 0 for CFB8
  bool whole_blocks;        // texts must be multiples of a block
  bool steals;              // XTS: the last unit takes the rest of a block
  bool pads;                // PKCS#7 is added
  bool is_aead;
  bool hashes_plaintext;  // GCM-SIV, whose hash also has a key for each message; CCM
  bool is_ccm;            // the nonce lies in its first counter block at byte 1
  bool counts_blocks;     // ChaCha20: an IV begins with the number of a block, of 32 bits, that must not wrap
  bool encrypting;
  bool apart;       // in and out have no byte in common
  bool lacks_ends;  // as TileList

  // Bytes of text that both buffers have room for.
  std::uint64_t room() const { return in_len < out_len ? in_len : out_len; }
  WARPCIPHER_HD std::uint64_t in_len_at(std::uint64_t i) const {
    return in_lengths != nullptr ? in_lengths[i] : in_len_of_all;
  }
};

// Sums over messages: positions of texts back to back, and numbers of tiles and chunks. They saturate at a limit that
// no position reaches.
struct Sums {
  std::uint64_t in;
  std::uint64_t out;
  std::uint64_t tiles;
  std::uint64_t chunks;
};

WARPCIPHER_HD constexpr bool fits(std::uint64_t offset, std::uint64_t len, std::uint64_t room) {
  return offset <= room && len <= room - offset;
}

inline constexpr std::uint32_t messages_of_sum = 256;  // each sum is over this many neighbours

struct SummaryBuffers {
  BatchSummary* summary;  // zeros
  Sums* sums;             // one for each messages_of_sum messages
  MessageView* views;
  HashView* hash_views;        // AEADs
  std::uint64_t* first_tile;   // one more than messages
  std::uint64_t* first_chunk;  // AEADs: likewise
};

// Fills the buffers from the columns. The views of a wrong message are meaningless, but its key exists.
void summarize_columns(const Device& device, Stream stream, const ColumnView& columns, const SummaryBuffers& buffers);

// The outcome of the messages of a batch.
struct Outcome {
  std::uint64_t text_len;      // of each message, if there are no views
  const std::uint32_t* words;  // 0: failed; nullptr: none did
  Status failure;              // of the failed ones
  std::uint32_t added;         // bytes written in addition to the text
  bool takes_off;              // other words are lengths of padding, which the text included
};

// Results in device memory. Counts summary->failed.
void write_results(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                   const Outcome& outcome, Result* results, BatchSummary* summary);

}  // namespace warpcipher::cuda
