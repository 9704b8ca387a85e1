// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/nonces.hpp"

#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;

// As NonceHash in src/message/checks.cpp.
__device__ __forceinline__ std::uint64_t fold(std::uint64_t a, std::uint64_t b) { return a * b ^ __umul64hi(a, b); }

__device__ __forceinline__ std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) {
  return std::uint64_t{a} << 32 | b;
}

// The part that two messages must not have in common: its words, and zeros up to `count`, a multiple of four.
struct MaskedNonce {
  static constexpr std::uint32_t count = 8;
  const MessageView* views;
  const Block* masks;

  __device__ __forceinline__ void load(std::uint32_t message, std::uint32_t (&words)[count]) const {
    const Block nonce = views[message].start, mask = masks[message];
#pragma unroll
    for (int w = 0; w < 3; ++w) words[w] = nonce.words[w];
#pragma unroll
    for (int w = 0; w < 4; ++w) words[3 + w] = mask.words[w];
    words[7] = 0;
  }
};

template <bool Extended, bool HasKeys>
struct KeyedNonce {
  static constexpr std::uint32_t nonce_words = Extended ? 6 : 3;
  static constexpr std::uint32_t key_words = HasKeys ? 8 : 0;
  static constexpr std::uint32_t count = (nonce_words + key_words + 3) / 4 * 4;
  KeyedNonces nonces;

  __device__ __forceinline__ void load(std::uint32_t message, std::uint32_t (&words)[count]) const {
    const MessageView& view = nonces.views[message];
    const Block start = view.start;
#pragma unroll
    for (std::uint32_t w = nonce_words + key_words; w < count; ++w) words[w] = 0;
#pragma unroll
    for (std::uint32_t w = 0; w < 4 && w < nonce_words; ++w) words[w] = start.words[w];
    if constexpr (Extended) {
      words[4] = nonces.hash_views[message].mask.words[0];
      words[5] = nonces.hash_views[message].mask.words[1];
    }
    if constexpr (HasKeys) {
      const std::uint8_t* const key = global(nonces.keys) + std::uint64_t{32} * view.key;
      const bool aligned = reinterpret_cast<std::uintptr_t>(key) % 16 == 0;
#pragma unroll
      for (std::uint32_t half = 0; half < 2; ++half) {
        const Block part = aligned ? load_aligned(key + 16 * half) : load_bytes(key + 16 * half, 16);
#pragma unroll
        for (std::uint32_t w = 0; w < 4; ++w) words[nonce_words + 4 * half + w] = part.words[w];
      }
    }
  }
};

template <class Identity>
__global__ void __launch_bounds__(threads)
    enter_nonces(const __grid_constant__ Identity identity, std::uint32_t messages,
                 const __grid_constant__ NonceTable table, BatchSummary* summary) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < messages; i += stride) {
    std::uint32_t words[Identity::count];
    identity.load(static_cast<std::uint32_t>(i), words);
    std::uint64_t hash = table.seeds[0];
#pragma unroll
    for (std::uint32_t w = 0; w < Identity::count; w += 4) {
      hash = fold(hash ^ pair_of(words[w], words[w + 1]),
                  pair_of(words[w + 2], words[w + 3]) ^ table.seeds[1 + w / 4 % 2]);
    }
    const unsigned long long entry = (hash >> 32 << 32) | (i + 1);
    for (auto place = static_cast<std::uint32_t>(hash) & table.mask;; place = (place + 1) & table.mask) {
      const unsigned long long found = atomicCAS(&table.places[place], 0ull, entry);
      if (found == 0) break;
      if (found >> 32 != entry >> 32) continue;
      std::uint32_t others[Identity::count];
      identity.load(static_cast<std::uint32_t>(found) - 1, others);
      std::uint32_t difference = 0;
#pragma unroll
      for (std::uint32_t w = 0; w < Identity::count; ++w) difference |= words[w] ^ others[w];
      if (difference == 0) {
        summary->bad = 1;
        break;
      }
    }
  }
}

template <class Identity>
void enter(const Device& device, Stream stream, const Identity& identity, std::uint32_t messages,
           const NonceTable& table, BatchSummary* summary) {
  launch(&enter_nonces<Identity>, configuration_of_lanes(device, messages, threads, 16), stream, identity, messages,
         table, summary);
}

}  // namespace

void check_nonces(const Device& device, Stream stream, const MessageView* views, const Block* masks,
                  std::uint32_t messages, const NonceTable& table, BatchSummary* summary) {
  enter(device, stream, MaskedNonce{views, masks}, messages, table, summary);
}

void check_nonces(const Device& device, Stream stream, const KeyedNonces& nonces, std::uint32_t messages,
                  const NonceTable& table, BatchSummary* summary) {
  const auto run = [&](auto identity) { enter(device, stream, identity, messages, table, summary); };
  if (nonces.hash_views != nullptr) {
    return nonces.keys != nullptr ? run(KeyedNonce<true, true>{nonces}) : run(KeyedNonce<true, false>{nonces});
  }
  nonces.keys != nullptr ? run(KeyedNonce<false, true>{nonces}) : run(KeyedNonce<false, false>{nonces});
}

}  // namespace warpcipher::cuda
