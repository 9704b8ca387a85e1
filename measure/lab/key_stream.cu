// SPDX-License-Identifier: Apache-2.0
// Key stream that stays in registers, as published figures of such kernels count it: a lane makes some of the units of
// a stream (64 bytes of ChaCha20, 16 of AES-128-CTR), and writes the XOR of all words that it made.
#if WARPCIPHER_HAS_CUDA
#include <array>

#include "cipher/chacha.hpp"
#include "core/error.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/source.cuh"
#include "gpu.cuh"

namespace warpcipher::lab {
namespace {

namespace lane_table = warpcipher::cuda::lane_table;
using warpcipher::cuda::Block;

// Of a nonce of zeros and a key of sevens.
constexpr std::array<std::uint8_t, 32> stream_key = [] {
  std::array<std::uint8_t, 32> key{};
  key.fill(7);
  return key;
}();
constexpr std::uint8_t stream_nonce[12] = {};

// Blocks that differ only in their counter: of the first round, columns 1 to 3 are made once.
struct ChaChaStart {
  chacha::State first;
  std::uint32_t after[16];

  ChaChaStart() : first(chacha::make_state(stream_key.data(), 0, stream_nonce)) {
    for (int i = 0; i < 16; ++i) after[i] = first.words[i];
    for (int i = 1; i < 4; ++i) chacha::quarter_round(after[i], after[4 + i], after[8 + i], after[12 + i]);
  }
};

constexpr std::uint32_t chacha_threads = 256, chacha_blocks = 4;  // 64 registers a lane

__global__ void __launch_bounds__(chacha_threads, chacha_blocks)
    chacha_kernel(const __grid_constant__ ChaChaStart start, std::uint32_t units, std::uint32_t* sums) {
  const std::uint32_t lane = blockIdx.x * chacha_threads + threadIdx.x;
  std::uint32_t sum = 0;
#pragma unroll 1
  for (std::uint32_t unit = lane; unit < units; unit += gridDim.x * chacha_threads) {
    std::uint32_t x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = i % 4 == 0 ? start.first.words[i] : start.after[i];
    x[12] = unit;
    chacha::quarter_round(x[0], x[4], x[8], x[12]);
    chacha::round_of_diagonals(x);
#pragma unroll
    for (int i = 1; i < chacha::double_rounds; ++i) chacha::double_round(x);
#pragma unroll
    for (int i = 0; i < 16; ++i) sum ^= x[i] + (i == 12 ? unit : start.first.words[i]);
  }
  sums[lane] = sum;
}

struct AesStart {
  std::uint32_t words[4 * 11];

  AesStart() {
    const aes::Schedule schedule = aes::expand_key(stream_key.data(), 16);
    for (int i = 0; i < 4 * 11; ++i) words[i] = byte_swap32(schedule.words[i]);
  }
};

constexpr std::uint32_t aes_threads = 1024;
using AesTables = lane_table::Tables128ByProduct;

// A lane makes eight blocks of a tile of 256, which share most of two rounds. units: a multiple of 256.
__global__ void __launch_bounds__(aes_threads, 1)
    aes_kernel(const __grid_constant__ AesStart start, std::uint32_t units, std::uint32_t* sums) {
  lane_table::fill_tables<AesTables, false>();
  __syncthreads();
  const lane_table::ParameterKey key{start.words};
  const lane_table::LaneCipher<AesTables, false, 10, lane_table::ParameterKey> cipher(key, 10);
  const std::uint32_t warps = gridDim.x * aes_threads / 32, lane = blockIdx.x * aes_threads + threadIdx.x;
  std::uint32_t entries[8], sum = 0;
  cipher.counting_entries(entries, threadIdx.x % 32);
#pragma unroll 1
  for (std::uint32_t tile = lane / 32; tile < units / 256; tile += warps) {
    const auto common = cipher.common_rounds(Block{{0, 0, 0, byte_swap32(256 * tile)}});
#pragma unroll
    for (int half = 0; half < 8; half += 4) {
      Block blocks[4];
      const std::uint32_t own[4] = {entries[half], entries[half + 1], entries[half + 2], entries[half + 3]};
      cipher.encrypt_rest(blocks, common, own);
#pragma unroll
      for (const Block& block : blocks) sum ^= block.words[0] ^ block.words[1] ^ block.words[2] ^ block.words[3];
    }
  }
  sums[lane] = sum;
}

}  // namespace

std::uint32_t start_key_stream(std::string_view name, std::uint32_t units, std::uint32_t* sums, Stream stream) {
  int device = 0;
  cudaDeviceProp properties{};
  cuda::check(cudaGetDevice(&device), "find the current device");
  cuda::check(cudaGetDeviceProperties(&properties, device), "look at the device");
  const auto blocks = static_cast<std::uint32_t>(properties.multiProcessorCount);
  if (name == "chacha20") {
    cuda::launch(&chacha_kernel, {chacha_blocks * blocks, chacha_threads}, stream, ChaChaStart(), units, sums);
    return chacha_blocks * blocks * chacha_threads;
  }
  if (name != "aes-128-ctr") {
    throw Error(Status::invalid_argument,
                "key stream is '" + std::string(name) + "': expected chacha20 or aes-128-ctr");
  }
  cuda::launch(&aes_kernel, {blocks, aes_threads, AesTables::shared_len}, stream, AesStart(), units, sums);
  return blocks * aes_threads;
}

}  // namespace warpcipher::lab
#endif
