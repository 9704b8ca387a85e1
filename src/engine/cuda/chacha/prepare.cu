// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/prepare.hpp"

#include "engine/cuda/chacha/elements.cuh"
#include "engine/cuda/chacha/setup.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {
namespace {

constexpr std::uint32_t threads = 128;

__global__ void __launch_bounds__(threads) prepare_kernel(const __grid_constant__ Preparation p) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < p.messages;
       i += std::uint64_t{gridDim.x} * threads) {
    Rows rows = derive_rows(p.source, i);
    if (p.streams != nullptr) {
      auto* const parts = reinterpret_cast<uint4*>(p.streams + i);
      rows.store_stream([&](int number, const uint4& part) { parts[number] = part; });
    }
    if (p.r == nullptr) continue;
    rows.last.words[0] = 0;
    std::uint32_t x[16];
    rows.fill(x);
    run_rounds(x);
    p.r[i] = {{x[0] + first_row(0), x[1] + first_row(1), x[2] + first_row(2), x[3] + first_row(3)}};
    p.s[i] = {{x[4] + rows.key[0], x[5] + rows.key[1], x[6] + rows.key[2], x[7] + rows.key[3]}};
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
