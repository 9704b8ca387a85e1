// SPDX-License-Identifier: Apache-2.0
// Permutations in device memory: words of the stream, sorted by CUB's radix sort with their numbers.
#include <cub/device/device_radix_sort.cuh>

#include "core/error.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "random/cuda/fill.hpp"
#include "random/cuda/kernels.hpp"

namespace warpcipher::random::cuda {
namespace {

using ::warpcipher::cuda::check, ::warpcipher::cuda::current_device, ::warpcipher::cuda::Device,
    ::warpcipher::cuda::launch, ::warpcipher::cuda::native, ::warpcipher::cuda::configuration_of_lanes,
    ::warpcipher::cuda::StreamBuffer;

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t blocks_of_multiprocessor = 8;

template <class Body>
__device__ __forceinline__ void for_each(std::uint64_t count, const Body& body) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * threads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride) body(i);
}

__global__ void __launch_bounds__(threads) number(std::uint32_t* numbers, std::uint64_t count) {
  for_each(count, [&](std::uint64_t i) { numbers[i] = static_cast<std::uint32_t>(i); });
}

// *tie becomes 1 where two words are equal.
__global__ void __launch_bounds__(threads)
    find_tie(const std::uint64_t* sorted, std::uint64_t count, std::uint32_t* tie) {
  for_each(count - 1, [&](std::uint64_t i) {
    if (sorted[i] == sorted[i + 1]) *tie = 1;
  });
}

__global__ void __launch_bounds__(threads)
    widen(const std::uint32_t* numbers, std::uint64_t count, std::uint64_t* out) {
  for_each(count, [&](std::uint64_t i) { out[i] = numbers[i]; });
}

}  // namespace

void permute(const StreamKey& key, std::uint64_t position, std::size_t item_len, std::uint8_t* data,
             std::uint64_t count, Stream stream) {
  const Device& device = current_device();
  const auto configuration = configuration_of_lanes(device, count, threads, blocks_of_multiprocessor);
  const StreamBuffer words(8 * count, stream), sorted(8 * count, stream), numbers(4 * count, stream);
  const StreamBuffer narrow(item_len == 4 ? 0 : 4 * count, stream), tie(sizeof(std::uint32_t), stream);
  auto* const in = reinterpret_cast<std::uint64_t*>(words.data());
  auto* const out = reinterpret_cast<std::uint64_t*>(sorted.data());
  auto* const values = reinterpret_cast<std::uint32_t*>(numbers.data());
  auto* const order = reinterpret_cast<std::uint32_t*>(item_len == 4 ? data : narrow.data());
  auto* const tied = reinterpret_cast<std::uint32_t*>(tie.data());
  std::size_t room = 0;
  const auto sort = [&](void* temporary) {
    check(cub::DeviceRadixSort::SortPairs(temporary, room, in, out, values, order, count, 0, 64, native(stream)),
          "sort words");
  };
  sort(nullptr);
  const StreamBuffer temporary(room, stream);
  const Distribution all = Distribution::of_integers(Type::uint64, 0, UINT64_MAX);
  for (std::uint32_t attempt = 0; attempt < domain::attempts; ++attempt) {
    fill(key, all, position, words.data(), count, attempt, stream);
    launch(&number, configuration, stream, values, count);
    sort(temporary.data());
    check(cudaMemsetAsync(tied, 0, sizeof *tied, native(stream)), "clear a flag");
    launch(&find_tie, configuration, stream, out, count, tied);
    if (item_len == 8) launch(&widen, configuration, stream, order, count, reinterpret_cast<std::uint64_t*>(data));
    std::uint32_t has_tie = 0;
    check(cudaMemcpyAsync(&has_tie, tied, sizeof has_tie, cudaMemcpyDeviceToHost, native(stream)), "copy a flag");
    check(cudaStreamSynchronize(native(stream)), "wait for a permutation");
    if (has_tie == 0) return;
  }
  throw Error(Status::engine_failure, "every draw of words for a permutation had two that are equal");
}

void fill(const StreamKey& key, const Distribution& distribution, std::uint64_t position, std::uint8_t* data,
          std::uint64_t count, std::uint32_t attempt, Stream stream, std::uint64_t least_lines,
          std::uint64_t piece_lines) {
  const std::uint64_t width = distribution.width();
  const std::uint64_t first = position / width, last = first + count;
  const LineRange lines{first * width / line_len, (last * width - 1) / line_len + 1};
  const ArrayFill fill{distribution, data, first, last, lines, attempt, least_lines, piece_lines};
  key.cipher == StreamCipher::chacha20 ? fill_chacha(key, fill, stream) : fill_aes(key, fill, stream);
}

}  // namespace warpcipher::random::cuda
