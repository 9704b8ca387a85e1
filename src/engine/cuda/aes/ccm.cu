// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/launches.hpp"

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/serial.cuh"
#include "engine/cuda/aes/source.cuh"
#include "mode/ccm.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

__device__ __forceinline__ Block load_part(const std::uint8_t* p, std::uint64_t left) {
  if (left >= 16 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0) return load_aligned(p);
  return load_bytes(p, left < 16 ? static_cast<std::uint32_t>(left) : 16);
}

__device__ __forceinline__ void store_part(std::uint8_t* p, std::uint64_t left, const Block& block) {
  if (left >= 16 && reinterpret_cast<std::uintptr_t>(p) % 16 == 0) return store_aligned(p, block);
  store_bytes(p, left < 16 ? static_cast<std::uint32_t>(left) : 16, block);
}

// The block without the bytes after the text.
__device__ __forceinline__ Block cut(Block block, std::uint64_t left) {
  if (left >= 16) return block;
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) {
    if (i >= left) set_byte(block, i, 0);
  }
  return block;
}

// B0, from the counter block, which has the nonce in the same place.
__device__ __forceinline__ Block first_block(const Block& counter, const HashView& hash) {
  const std::uint32_t lengths_len = get_byte(counter, 0) + 1;
  std::uint8_t nonce[15], bytes[16];
  for (std::uint32_t i = 0; i < 15; ++i) nonce[i] = static_cast<std::uint8_t>(get_byte(counter, i + 1));
  ccm_first_block(nonce, ccm_lengths_len - lengths_len, hash.aad_len, hash.text_len, hash.tag_len, bytes);
  return load_bytes(bytes, 16);
}

// The first block of associated data, with their length before them. `taken`: how many bytes of them it has.
__device__ __forceinline__ Block first_aad_block(const HashView& hash, std::uint32_t& taken) {
  std::uint8_t bytes[16] = {};
  const auto head = static_cast<std::uint32_t>(ccm_aad_head(hash.aad_len, bytes));
  taken = hash.aad_len < 16 - head ? static_cast<std::uint32_t>(hash.aad_len) : 16 - head;
  for (std::uint32_t i = 0; i < taken; ++i) bytes[head + i] = global(hash.aad)[i];
  return load_bytes(bytes, 16);
}

// The text is too short for a carry beyond the last eight bytes (appendix A.1: q is at most 8).
__device__ __forceinline__ void count(Block& counter) {
  const std::uint32_t low = byte_swap(counter.words[3]) + 1;
  counter.words[3] = byte_swap(low);
  if (low == 0) counter.words[2] = byte_swap(byte_swap(counter.words[2]) + 1);
}

// The tag under the mask. Decrypts and encrypts in step: the key stream of a block is made beside the MAC of the block
// before it.
template <class Cipher>
__device__ __forceinline__ Block run_message(const Cipher& cipher, const MessageView& view, const HashView& hash,
                                             bool encrypting) {
  Block counter = view.start;
  Block blocks[2] = {first_block(counter, hash), counter};
  cipher(blocks);
  if (hash.aad_len != 0) {
    std::uint32_t taken;
    Block mac[1] = {blocks[0] ^ first_aad_block(hash, taken)};
    cipher(mac);
#pragma unroll 1
    for (std::uint64_t at = taken; at < hash.aad_len; at += 16) {
      mac[0] = mac[0] ^ load_part(global(hash.aad) + at, hash.aad_len - at);
      cipher(mac);
    }
    blocks[0] = mac[0];
  }
#pragma unroll 1
  for (std::uint64_t at = 0; at < view.in_len; at += 16) {
    const std::uint64_t left = view.in_len - at;
    const Block in = load_part(global(view.in) + at, left);
    const Block out = cut(in ^ blocks[1], left);
    store_part(global(view.out) + at, left, out);
    count(counter);
    blocks[0] = blocks[0] ^ (encrypting ? in : out);
    blocks[1] = counter;
    cipher(blocks);
  }
  return blocks[0];
}

// Compares the tag in constant time.
__device__ __forceinline__ bool matches(const HashView& hash, const Block& tag) {
  const Block difference = cut(tag ^ load_bytes(global(hash.tag), hash.tag_len), hash.tag_len);
  return (difference.words[0] | difference.words[1] | difference.words[2] | difference.words[3]) == 0;
}

template <class Tables>
__global__ void __launch_bounds__(block_threads, 1)
    ccm_kernel(const __grid_constant__ CcmBatch batch, std::uint32_t* verdicts) {
  fill_tables<Tables, false>();
  __syncthreads();
  for_each_group(batch.messages, [&](std::uint32_t first) {
    const std::uint32_t own = first + lane_index();
    if (own >= batch.messages) return;
    const std::uint32_t i = batch.order != nullptr ? batch.order[own] : own;
    const MessageView& view = batch.views[i];
    const HashView& hash = batch.hash_views[i];
    const BatchSource::Key key{global(batch.round_keys) + std::size_t{most_round_keys} * view.key};
    const LaneCipher<Tables, false, 0, BatchSource::Key> cipher(key, batch.rounds);
    const Block tag = run_message(cipher, view, hash, batch.encrypting) ^ batch.masks[i];
    if (verdicts == nullptr) {
      store_bytes(global(hash.tag), hash.tag_len, tag);
      return;
    }
    const bool is_right = matches(hash, tag);
    verdicts[i] = is_right ? 1 : 0;
    for (std::uint64_t at = 0; !is_right && at < view.out_len; at += 16) {
      store_part(global(view.out) + at, view.out_len - at, Block{});
    }
  });
}

template <class Tables>
void launch_layout(const Device& device, Stream stream, const CcmBatch& batch, std::uint32_t* verdicts) {
  LaunchConfiguration configuration = serial_configuration(device, batch.messages, block_threads / warp_len);
  configuration.shared_len = Tables::shared_len;
  launch(&ccm_kernel<Tables>, configuration, stream, batch, verdicts);
}

}  // namespace

void run_ccm(const Device& device, Stream stream, TableLayout layout, const CcmBatch& batch, std::uint32_t* verdicts) {
  layout == TableLayout::tables_128 ? launch_layout<Tables128>(device, stream, batch, verdicts)
                                    : launch_layout<Tables64>(device, stream, batch, verdicts);
}

}  // namespace warpcipher::cuda::lane_table
