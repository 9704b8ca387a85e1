// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 of many messages: a lane takes a message, from its key to its tag.
//
//   key stream   logic pipe      } warps of a multiprocessor are at different places of their messages, so that one
//   Poly1305     multiply pipe   } multiplies while another adds, rotates, and waits for its text
//
// Text is read once and written once. A lane hashes all blocks of its message one after another, so it needs no power
// of r but r itself (cipher/poly1305_words.hpp).
#include "cipher/poly1305_words.hpp"
#include "engine/cuda/chacha/aead.hpp"
#include "engine/cuda/chacha/finish.cuh"
#include "engine/cuda/chacha/setup.cuh"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/inputs/speculation.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {

// Dynamic: the parts of a KeyStream for each thread.
extern __shared__ uint4 shared_streams[];

namespace {

constexpr std::uint32_t threads = 128;
constexpr std::uint32_t blocks_of_multiprocessor = 6;  // 80 registers a lane
constexpr std::uint32_t parts_of_stream = sizeof(KeyStream) / sizeof(uint4);
constexpr std::uint32_t most_blocks = 1 << 16;  // of a multiprocessor, one after another: messages end when they will

// A thread reads and writes its own parts alone: no barriers.
struct SharedStream {
  __device__ __forceinline__ uint4& part(int number) const {
    return shared_streams[static_cast<std::uint32_t>(number) * threads + threadIdx.x];
  }
  __device__ __forceinline__ std::uint32_t first_word(int number) const { return part(number).x; }
};

// The first `len` bytes of a text, up to 64, filled up with zeros to whole blocks.
__device__ __forceinline__ void add_text(poly1305::WordHash& hash, const Text64& text, std::uint32_t len) {
#pragma unroll
  for (std::uint32_t i = 0; i < hash_blocks_of_block; ++i) {
    if (16 * i >= len) break;
    Block block = to_block(text.quarters[i]);
    if (16 * i + 16 > len) {
#pragma unroll
      for (std::uint32_t b = 0; b < 16; ++b) {
        if (16 * i + b >= len) set_byte(block, b, 0);
      }
    }
    hash.add_block(block.words);
  }
}

template <bool Encrypting>
__device__ __forceinline__ void run_message(const WholeBatch& batch, std::uint32_t message) {
  const SharedStream stream;
  derive_rows(batch.source, message).store_stream([&](int number, const uint4& part) { stream.part(number) = part; });
  const MessageView& view = batch.source.views[message];
  const HashView& hash_view = batch.tags.views[message];
  poly1305::WordHash hash(batch.tags.r[message].words);
#pragma unroll 1
  for (std::uint64_t k = 0; k < hash_view.aad_blocks(); ++k) {
    hash.add_block(ghash::load_block(hash_view.aad, hash_view.aad_len, k).words);
  }
  const std::uint8_t* in = global(view.in);
  std::uint8_t* out = global(view.out);
  const bool aligned = are_aligned(in, out);
  const auto blocks = static_cast<std::uint32_t>((view.in_len + block_len - 1) / block_len);
  const auto last_len = static_cast<std::uint32_t>(view.in_len - std::uint64_t{block_len} * (blocks - 1));
#pragma unroll 1
  for (std::uint32_t block = 1; block <= blocks; ++block) {
    const std::uint32_t len = block < blocks ? block_len : last_len;
    Text64 text = load_text(in, len, aligned);
    std::uint32_t x[16];
    make_key_stream<3>(stream, block, x);
    if constexpr (!Encrypting) add_text(hash, text, len);
    add_key_stream(text, x);
    store_text(out, len, aligned, text);
    if constexpr (Encrypting) add_text(hash, text, len);
    in += block_len;
    out += block_len;
  }
  hash.add_block(lengths_of(hash_view).words);
  Block tag;
  hash.finish(batch.tags.s[message].words, tag.words);
  settle(batch.tags, message, tag);
  if (Encrypting || batch.tags.verdicts == nullptr) return;
  // The verdict is public: that is why it is read back, and no branch is made of the tags.
  if (const volatile std::uint32_t& verdict = batch.tags.verdicts[message]; verdict != 0) return;
#pragma unroll 1
  for (std::uint64_t done = 0; done < view.in_len; done += block_len) {
    store_text(global(view.out) + done, cut_to_32_bits(view.in_len - done), aligned, Text64{});
  }
}

template <bool Encrypting>
__global__ void __launch_bounds__(threads, blocks_of_multiprocessor)
    whole_kernel(const __grid_constant__ WholeBatch batch, const __grid_constant__ Speculation speculation) {
  if (!may_start(speculation)) return;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < batch.messages;
       i += std::uint64_t{gridDim.x} * threads) {
    run_message<Encrypting>(batch, batch.order != nullptr ? batch.order[i] : static_cast<std::uint32_t>(i));
  }
}

}  // namespace

void run_whole(const Device& device, Stream stream, const WholeBatch& batch, bool encrypting,
               const Speculation& speculation) {
  LaunchConfiguration configuration = configuration_of_lanes(device, batch.messages, threads, most_blocks);
  configuration.shared_len = parts_of_stream * threads * sizeof(uint4);
  launch(encrypting ? &whole_kernel<true> : &whole_kernel<false>, configuration, stream, batch, speculation);
}

}  // namespace warpcipher::cuda::chacha
