// SPDX-License-Identifier: Apache-2.0
// What the benchmarks on host memory share: memory of either kind, what the link moves, and medians.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "../device/buffers.hpp"

namespace warpcipher::bench {

using Clock = std::chrono::steady_clock;

inline double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class HostMemory {
 public:
  HostMemory(std::size_t size, bool pageable) : pageable_(pageable) {
    if (pageable) {
      memory_ = std::malloc(size);
      if (memory_ == nullptr) throw std::bad_alloc();
    } else {
      must(cudaMallocHost(&memory_, size), "cudaMallocHost");
    }
    std::memset(memory_, 0x5a, size);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() { pageable_ ? std::free(memory_) : static_cast<void>(cudaFreeHost(memory_)); }

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }

 private:
  void* memory_ = nullptr;
  const bool pageable_;
};

// What the link moves from and to page-locked memory, in GB/s each way, both at once.
inline double copy_rate(int repetitions) {
  constexpr std::size_t len = std::size_t{256} << 20;
  const HostMemory host(2 * len, false);
  const Buffers device(len);
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) must(cudaStreamCreate(&stream), "cudaStreamCreate");
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = Clock::now();
    must(cudaMemcpyAsync(device.in(), host.data(), len, cudaMemcpyHostToDevice, streams[0]), "cudaMemcpyAsync");
    must(cudaMemcpyAsync(host.data() + len, device.out(), len, cudaMemcpyDeviceToHost, streams[1]), "cudaMemcpyAsync");
    for (cudaStream_t stream : streams) must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    best = std::max(best, static_cast<double>(len) / 1e9 / seconds(start, Clock::now()));
  }
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
  return best;
}

}  // namespace warpcipher::bench
