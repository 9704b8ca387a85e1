// SPDX-License-Identifier: Apache-2.0
// Random arrays by ChaCha20: a lane makes a block of key stream in registers, and of that its elements. Nothing is read
// but the kernel's parameters.
#include <algorithm>

#include "cipher/chacha.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "random/cuda/kernels.hpp"

namespace warpcipher::random::cuda {
namespace {

using ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device, ::warpcipher::cuda::launch,
    ::warpcipher::cuda::configuration_of_lanes;

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t blocks_of_multiprocessor = 4;  // 64 registers a lane

// Lines whose blocks differ only in their counter. Of the first round the columns 1 to 3 are computed once.
struct Lines {
  ChaChaStream stream;      // for further words
  chacha::State first;      // the block of line `begin`
  std::uint32_t after[16];  // the same after the first round; column 0 is not used
  std::uint64_t begin, count;
};

Lines make_lines(const ChaChaStream& stream, std::uint64_t block, std::uint64_t line, std::uint64_t count) {
  Lines lines{stream, stream.of_block(block), {}, line, count};
  std::copy_n(lines.first.words, 16, lines.after);
  auto& x = lines.after;
  for (int i = 1; i < 4; ++i) chacha::quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
  return lines;
}

__device__ __forceinline__ void make_block(const Lines& lines, std::uint32_t counter, std::uint32_t (&x)[16]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = i % 4 == 0 ? lines.first.words[i] : lines.after[i];
  x[12] = counter;
  chacha::quarter_round(x[0], x[4], x[8], x[12]);
  chacha::round_of_diagonals(x);
#pragma unroll
  for (int i = 1; i < chacha::double_rounds; ++i) chacha::double_round(x);
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] += i == 12 ? counter : lines.first.words[i];
}

template <class F>
__global__ void __launch_bounds__(threads, blocks_of_multiprocessor)
    fill_kernel(const __grid_constant__ Lines lines, const __grid_constant__ F function, const Elements elements) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * threads;
#pragma unroll 1
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < lines.count; i += stride) {
    std::uint32_t x[16];
    make_block(lines, lines.first.words[12] + static_cast<std::uint32_t>(i), x);
    std::uint32_t values[value_words<F>];
    make_values(function, lines.stream, lines.begin + i, x, values);
    store_line<F>(elements, lines.begin + i, values);
  }
}

}  // namespace

void fill_chacha(const StreamKey& key, const ArrayFill& fill, Stream stream) {
  const Device& device = current_device();
  const Secret<ChaChaStream> of_key(key.chacha());
  const std::uint64_t base = domain::of_attempt(fill.attempt);
  // The counter carries into the nonce between launches.
  for (std::uint64_t line = fill.lines.begin; line < fill.lines.end;) {
    const std::uint64_t to_carry = (std::uint64_t{1} << 32) - (base + line) % (std::uint64_t{1} << 32);
    const std::uint64_t count = std::min(fill.lines.end - line, to_carry);
    const Secret<Lines> lines(make_lines(*of_key, base + line, line, count));
    visit_on_device(fill, [&](const auto& function, const Elements& elements) {
      launch(&fill_kernel<std::decay_t<decltype(function)>>,
             configuration_of_lanes(device, count, threads, blocks_of_multiprocessor), stream, *lines, function,
             elements);
    });
    line += count;
  }
}

}  // namespace warpcipher::random::cuda
