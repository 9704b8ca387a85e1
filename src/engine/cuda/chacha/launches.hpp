// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels of ChaCha20 and Poly1305. Pointers are to device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/chacha.hpp"
#include "cipher/poly1305.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "message/pieces.hpp"

namespace warpcipher::cuda::chacha {

namespace ciphers = warpcipher::chacha;

inline constexpr std::uint32_t block_len = 64;
inline constexpr std::uint32_t hash_blocks_of_block = block_len / 16;  // Poly1305's

// The key stream of a message: its key, the number of its first block, its nonce. Columns 1 to 3 of the first round do
// not depend on the counter, so they are computed once a message: words 1, 5, 9, 13; 2, 6, 10, 14; 3, 7, 11, 15.
struct alignas(16) KeyStream {
  std::uint32_t key[8];
  std::uint32_t counter;
  std::uint32_t nonce[3];
  std::uint32_t columns[12];
};

// Where the parts of a message's IV lie. MessageView::start has its first 16 bytes.
enum class NonceForm : std::uint8_t {
  counter_first,  // ChaCha20: counter and nonce
  nonce,          // ChaCha20-Poly1305: 12 bytes; the text begins with block 1
  extended,       // XChaCha20-Poly1305: 16 bytes, and 8 in HashView::mask
  // Of a part of a message the last word of HashView::mask has Message::first_block.
};

// Messages and their key streams.
struct Batch {
  const MessageView* views;
  const std::uint64_t* first_tile;  // prefix sums, one more than messages
  const KeyStream* streams;
  std::uint32_t messages;
  std::uint64_t tiles;
  std::uint64_t units;
  std::uint64_t most_units;
};

// Where the texts of a batch lie, if in pieces (src/message/pieces.hpp).
struct TextPieces {
  const PiecePlace* places;
  const std::uint64_t* blocks;  // of each message
  std::uint32_t piece_blocks;   // ChaCha20's
};

// How the text of a message is hashed on tensor cores (chunks.cu has the algebra). A tile of the product is 32
// blocks of ChaCha20, one a lane; a segment is that many tiles, with a matrix each; warps of a block of threads take
// segments in turn.
inline constexpr std::uint32_t tiles_of_segment = 8;
inline constexpr std::uint32_t warps_of_chunk = 4;
inline constexpr std::uint32_t blocks_of_segment = 32 * tiles_of_segment;
inline constexpr std::uint32_t hash_blocks_of_segment = blocks_of_segment * hash_blocks_of_block;
// HashView::chunk_blocks is a multiple of this.
inline constexpr std::uint32_t chunk_multiple = warps_of_chunk * hash_blocks_of_segment;

// Powers of the r of all messages. Secret. The limbs of a power are `messages` words apart: lanes that make those of
// neighbours write neighbouring words.
struct Factors {
  static constexpr std::uint32_t blocks = 0;                        // r^i, i below 16
  static constexpr std::uint32_t rows = 16;                         // r^(16 i), i below 8
  static constexpr std::uint32_t tiles = 24;                        // r^(128 i)
  static constexpr std::uint32_t warps = tiles + tiles_of_segment;  // r^(1024 i): for the segments of warps
  static constexpr std::uint32_t turn = warps + warps_of_chunk;     // r^(1024 * warps_of_chunk)
  static constexpr std::uint32_t count = turn + 1;

  std::uint32_t* words;
  std::uint32_t messages;

  static constexpr std::size_t words_for(std::uint32_t messages) { return std::size_t{5} * count * messages; }
  WARPCIPHER_HD std::uint32_t* limb(std::uint32_t message, std::uint32_t power, std::uint32_t i) const {
    return words + std::size_t{5 * power + i} * messages + message;
  }
};

// The authentication of a batch.
struct Tags {
  const HashView* views;
  const std::uint64_t* first_chunk;  // of each message, and at the end `chunks`
  const Block* r;                    // of each message: the first half of its one-time key
  const Block* s;                    // the second
  std::uint64_t chunks;
  std::uint64_t chunk_blocks;  // of all views
  std::uint64_t most_blocks;   // of one message, AAD and text
  std::uint32_t* verdicts;     // nullptr: tags are written. Else 1 if the tag matches, or 0
  bool are_sums;               // Message::is_part: instead of tags
  // Of few messages: Factors::words that derive_on_host() has made, and an element for each chunk. Else nullptr.
  std::uint32_t* factors = nullptr;
  poly1305::Element* sums = nullptr;
};

// --- The kernels of the family; choose.hpp chooses. Host code only, so that the choice can be tested without a GPU.
enum class StreamKernel : std::uint8_t {
  packed,  // four lanes a message: many short ones
  tiles,   // a warp takes 256 blocks of one message
};

enum class AeadKernel : std::uint8_t {
  chunks,  // text and Poly1305 in one pass, Poly1305 on tensor cores
  lanes,   // text and Poly1305 by up to 32 lanes a message, from its key to its tag: many of them
};

// --- ChaCha20-Poly1305 (RFC 8439, section 2.8): tags, and texts with their tags.
// The best number of Poly1305's blocks in a chunk, for a batch of about `blocks` in all.
std::uint64_t chunk_blocks_for(const Device& device, std::uint64_t blocks, std::uint64_t messages);

// AeadKernel::chunks: texts and tags. Where a verdict is 0, the text is zeros: it has been decrypted by then, and is
// wiped before later work of the stream begins. Pass::hash: only the tags of ciphertexts at `in`, of whole blocks.
// Pass::gather: encrypts texts of whole blocks that lie in pieces, each at a multiple of 16, as `out` does.
// Pass::scatter: decrypts into such; the caller wipes them where a verdict is 0.
enum class Pass : std::uint8_t { encrypt, decrypt, hash, gather, scatter };
void run_chunks(const Device& device, Stream stream, const Batch& batch, const Tags& tags, Pass pass,
                const TextPieces& pieces = {});

// --- Texts XORed with ChaCha20's key stream: a block a lane.
void add_key_streams(const Device& device, Stream stream, StreamKernel kernel, const Batch& batch);

// --- ChaCha20-Poly1305 of many messages in one kernel: AeadKernel::lanes.
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

// --- Derived by the GPU from the key and the nonce of each message, a lane a message.
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

// The same of one message by the host: its key stream from block 1 on, the second half of its one-time key, and its
// factors. All in host memory.
void derive_on_host(const ciphers::MessageKey& key, KeyStream& stream, Block& s, const Factors& factors,
                    std::uint32_t message);

}  // namespace warpcipher::cuda::chacha
