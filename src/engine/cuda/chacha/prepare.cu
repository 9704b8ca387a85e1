// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/prepare.hpp"

#include "engine/cuda/chacha/elements.cuh"
#include "engine/cuda/chacha/rounds.cuh"
#include "engine/cuda/chacha/text.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {
namespace {

constexpr std::uint32_t threads = 128;

__device__ __forceinline__ Block load_key(const std::uint8_t* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0 ? load_aligned(p) : load_bytes(p, 16);
}

// All twenty rounds, without the addition of the first words at the end.
__device__ __forceinline__ void run_rounds(std::uint32_t (&x)[16]) {
#pragma unroll 1
  for (int i = 0; i < ciphers::double_rounds; ++i) double_round(x);
}

__device__ __forceinline__ void fill(std::uint32_t (&x)[16], const std::uint32_t (&key)[8], const Block& last) {
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = first_row(i);
#pragma unroll
  for (int i = 0; i < 8; ++i) x[4 + i] = key[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) x[12 + i] = last.words[i];
}

__global__ void __launch_bounds__(threads) prepare_kernel(const __grid_constant__ Preparation p) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < p.messages;
       i += std::uint64_t{gridDim.x} * threads) {
    const MessageView& view = p.views[i];
    const std::uint8_t* const bytes = global(p.keys) + std::uint64_t{32} * view.key;
    const Block start = view.start, low = load_key(bytes), high = load_key(bytes + 16);
    std::uint32_t key[8], x[16];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      key[w] = low.words[w];
      key[4 + w] = high.words[w];
    }
    const std::uint32_t first = p.are_parts ? 1 + p.hash_views[i].mask.words[3] : 1;  // of an AEAD's text
    Block last = start;                                                               // the counter and the nonce
    if (p.form == NonceForm::nonce) last = {{first, start.words[0], start.words[1], start.words[2]}};
    if (p.form == NonceForm::extended) {
      fill(x, key, start);
      run_rounds(x);
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        key[w] = x[w];
        key[4 + w] = x[12 + w];
      }
      const Block rest = p.hash_views[i].mask;
      last = {{first, 0, rest.words[0], rest.words[1]}};
    }
    fill(x, key, last);
    round_of_columns(x);
    auto* const vectors = reinterpret_cast<uint4*>(p.streams + i);
    vectors[0] = make_uint4(key[0], key[1], key[2], key[3]);
    vectors[1] = make_uint4(key[4], key[5], key[6], key[7]);
    vectors[2] = to_vector(last);
#pragma unroll
    for (int c = 1; c < 4; ++c) vectors[2 + c] = make_uint4(x[c], x[4 + c], x[8 + c], x[12 + c]);
    if (p.r == nullptr) continue;
    last.words[0] = 0;
    fill(x, key, last);
    run_rounds(x);
    p.r[i] = {{x[0] + first_row(0), x[1] + first_row(1), x[2] + first_row(2), x[3] + first_row(3)}};
    p.s[i] = {{x[4] + key[0], x[5] + key[1], x[6] + key[2], x[7] + key[3]}};
  }
}

// The factors from `begin` on are the powers of base from 1 on, `count` of them; returns the next.
__device__ __forceinline__ Element fill_powers(const Factors& factors, std::uint32_t message, std::uint32_t begin,
                                               std::uint32_t count, const Element& base) {
  Element next = one();
#pragma unroll 1
  for (std::uint32_t power = begin; power < begin + count; ++power) {
#pragma unroll
    for (std::uint32_t i = 0; i < 5; ++i) *factors.limb(message, power, i) = next.limbs[i];
    next = multiply(next, base);
  }
  return next;
}

__global__ void __launch_bounds__(threads)
    make_factors_kernel(const Block* r, const __grid_constant__ Factors factors) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < factors.messages;
       i += std::uint64_t{gridDim.x} * threads) {
    const auto message = static_cast<std::uint32_t>(i);
    Element next = to_r(r[i]);
    next = fill_powers(factors, message, Factors::blocks, 16, next);
    next = fill_powers(factors, message, Factors::rows, 8, next);
    next = fill_powers(factors, message, Factors::tiles, tiles_of_segment, next);
    next = fill_powers(factors, message, Factors::warps, warps_of_chunk, next);
#pragma unroll
    for (std::uint32_t limb = 0; limb < 5; ++limb) *factors.limb(message, Factors::turn, limb) = next.limbs[limb];
  }
}

}  // namespace

void prepare(const Device& device, Stream stream, const Preparation& preparation) {
  launch(&prepare_kernel, configuration_of_lanes(device, preparation.messages, threads, 16), stream, preparation);
}

void make_factors(const Device& device, Stream stream, const Block* r, const Factors& factors) {
  launch(&make_factors_kernel, configuration_of_lanes(device, factors.messages, threads, 16), stream, r, factors);
}

}  // namespace warpcipher::cuda::chacha
