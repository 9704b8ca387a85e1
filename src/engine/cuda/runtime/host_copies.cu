// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/host_copies.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/refusal.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 512;
// H200, 256 texts of 16 KiB out while a copy engine brings as much in: 2, 4, 8 and 16 blocks move 46.8, 47.2, 47.0 and
// 39.3 GB/s each way.
constexpr std::uint32_t full_blocks = 8;
// H200, eight payloads of a queue, whose texts copy engines bring in: 1 block 40.2 to 41.7 GB/s, 2 blocks 37.7 to 38.1;
// on another machine 4, 8 and 16 blocks 36.1, 35.4 and 33.2. One batch of 16,384 texts in pieces: 1, 2 and 8 blocks
// 29.8, 25.1 and 23.8: with 8 blocks, a piece was in only when the piece before it had gone out.
constexpr std::uint32_t gentle_blocks = 1;
constexpr std::uint32_t in_flight = 4;  // loads of a lane

// Lanes copy adjacent words, so that a step of a warp is one request on the link.
template <class Word>
__device__ __forceinline__ void copy_words(std::uint8_t* to, const std::uint8_t* from, std::size_t len) {
  auto* const out = reinterpret_cast<Word*>(to);
  const auto* const in = reinterpret_cast<const Word*>(from);
  const std::size_t words = len / sizeof(Word);
  std::size_t i = lane_index();
  for (; i + (in_flight - 1) * warp_len < words; i += in_flight * warp_len) {
    Word held[in_flight];
#pragma unroll
    for (std::uint32_t k = 0; k < in_flight; ++k) held[k] = in[i + k * warp_len];
#pragma unroll
    for (std::uint32_t k = 0; k < in_flight; ++k) out[i + k * warp_len] = held[k];
  }
  for (; i < words; i += warp_len) out[i] = in[i];
}

// One warp for each copy.
__global__ void __launch_bounds__(threads) copy_many_kernel(const DeviceCopy* copies, std::uint32_t count) {
  const std::uint32_t warps = gridDim.x * (blockDim.x / warp_len);
  for (std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / warp_len; i < count; i += warps) {
    const DeviceCopy copy = copies[i];
    auto* const to = static_cast<std::uint8_t*>(copy.to);
    const auto* const from = static_cast<const std::uint8_t*>(copy.from);
    const std::uintptr_t places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    std::size_t done = 0;
    if (places % sizeof(uint4) == 0) {
      done = copy.len / sizeof(uint4) * sizeof(uint4);
      copy_words<uint4>(to, from, done);
    } else if (places % sizeof(std::uint32_t) == 0) {
      done = copy.len / sizeof(std::uint32_t) * sizeof(std::uint32_t);
      copy_words<std::uint32_t>(to, from, done);
    }
    copy_words<std::uint8_t>(to + done, from + done, copy.len - done);
  }
}

#if CUDART_VERSION >= 13000
// For initcheck, force calls: the initcheck of CUDA 13.0 does not see what a batch of copies writes.
bool in_batches() { return overrides().copies != ForcedCopies::calls; }
#endif

}  // namespace

void copy_all(std::span<const DeviceCopy> copies, cudaMemcpyKind kind, Stream stream) {
  const char* const what = kind == cudaMemcpyHostToDevice ? "copy to the device" : "copy from the device";
#if CUDART_VERSION >= 13000
  if (copies.size() > 1 && in_batches()) {
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> lens;
    for (const DeviceCopy& copy : copies) {
      to.push_back(copy.to);
      from.push_back(copy.from);
      lens.push_back(copy.len);
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    std::size_t first = 0;  // the first copy with these attributes
    check(cudaMemcpyBatchAsync(to.data(), from.data(), lens.data(), copies.size(), &attributes, &first, 1,
                               native(stream)),
          what);
    return;
  }
#endif
  for (const DeviceCopy& copy : copies) {
    check(cudaMemcpyAsync(copy.to, copy.from, copy.len, kind, native(stream)), what);
  }
}

void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream) {
  if (count == 0) return;
  constexpr std::size_t warps_of_block = threads / warp_len;
  const std::size_t most_blocks = pace == Pace::gentle ? gentle_blocks : full_blocks;
  const std::size_t blocks = std::min(most_blocks, (count + warps_of_block - 1) / warps_of_block);
  launch(&copy_many_kernel, LaunchConfiguration{static_cast<std::uint32_t>(blocks), threads}, stream, copies,
         static_cast<std::uint32_t>(count));
}

}  // namespace warpcipher::cuda
