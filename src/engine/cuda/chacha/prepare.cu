// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/launches.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/chacha/derive.cuh"
#include "engine/cuda/chacha/elements.cuh"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {
namespace {

constexpr std::uint32_t threads = 128;

__global__ void __launch_bounds__(threads)
    prepare_kernel(const __grid_constant__ Preparation p, const __grid_constant__ Speculation speculation) {
  static_cast<void>(may_start(speculation));
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < p.messages;
       i += std::uint64_t{gridDim.x} * threads) {
    const Derived derived(p.keys, p.views[i], p.form, p.hash_views + i, p.are_parts);
    auto* const vectors = reinterpret_cast<uint4*>(p.streams + i);
    derived.store_stream([&](int v, const uint4& vector) { vectors[v] = vector; });
    if (p.r != nullptr) derived.one_time_key(p.r[i], p.s[i]);
  }
}

// The factors from `begin` on are the powers of base from 1 on, `count` of them; returns the next.
WARPCIPHER_HD inline Element fill_powers(const Factors& factors, std::uint32_t message, std::uint32_t begin,
                                  std::uint32_t count, const Element& base) {
  Element next{{1, 0, 0, 0, 0}};
  for (std::uint32_t power = begin; power < begin + count; ++power) {
    WARPCIPHER_UNROLL
    for (std::uint32_t i = 0; i < 5; ++i) *factors.limb(message, power, i) = next.limbs[i];
    next = multiply(next, base);
  }
  return next;
}

WARPCIPHER_HD inline void fill_factors(const Factors& factors, std::uint32_t message, const Element& r) {
  Element next = fill_powers(factors, message, Factors::blocks, 16, r);
  next = fill_powers(factors, message, Factors::rows, 8, next);
  next = fill_powers(factors, message, Factors::tiles, tiles_of_segment, next);
  next = fill_powers(factors, message, Factors::warps, warps_of_chunk, next);
  WARPCIPHER_UNROLL
  for (std::uint32_t limb = 0; limb < 5; ++limb) *factors.limb(message, Factors::turn, limb) = next.limbs[limb];
}

__global__ void __launch_bounds__(threads)
    make_factors_kernel(const Block* r, const __grid_constant__ Factors factors) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < factors.messages;
       i += std::uint64_t{gridDim.x} * threads) {
    fill_factors(factors, static_cast<std::uint32_t>(i), to_r(r[i]));
  }
}

}  // namespace

void prepare(const Device& device, Stream stream, const Preparation& preparation, const Speculation& speculation) {
  launch(&prepare_kernel, configuration_of_lanes(device, preparation.messages, threads, 16), stream, preparation,
         speculation);
}

void make_factors(const Device& device, Stream stream, const Block* r, const Factors& factors) {
  launch(&make_factors_kernel, configuration_of_lanes(device, factors.messages, threads, 16), stream, r, factors);
}

void derive_on_host(const ciphers::MessageKey& key, KeyStream& stream, Block& s, const Factors& factors,
                    std::uint32_t message) {
  Secret<ciphers::State> state = key.state(1);
  std::copy_n(state->words + 4, 8, stream.key);
  std::copy_n(state->words + 12, 1, &stream.counter);
  std::copy_n(state->words + 13, 3, stream.nonce);
  round_of_columns(state->words);
  for (int c = 1; c < 4; ++c) {
    for (int row = 0; row < 4; ++row) stream.columns[4 * (c - 1) + row] = state->words[c + 4 * row];
  }
  *state = ciphers::key_stream(*key.state(0));
  Secret<std::uint8_t[poly1305::key_len]> one_time;
  ciphers::store_words(*one_time, state->words, 8);
  std::copy_n(state->words + 4, 4, s.words);
  fill_factors(factors, message, poly1305::load_r(*one_time));
}

}  // namespace warpcipher::cuda::chacha
