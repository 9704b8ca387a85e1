// SPDX-License-Identifier: Apache-2.0
// What the benchmarks on device memory share: texts and results there, and the time between two points of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/cuda/engine.hpp"

namespace warpcipher::bench {

inline void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

inline std::vector<std::uint8_t> read(const std::uint8_t* device, std::size_t len) {
  std::vector<std::uint8_t> bytes(len);
  must(cudaMemcpy(bytes.data(), device, len, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return bytes;
}

// `len` bytes of text, as many for the result, a tag, and a stream, on the current device.
class Buffers {
 public:
  explicit Buffers(std::size_t len) {
    try {
      in_ = allocate(len);
      out_ = allocate(len);
      tag_ = allocate(16);
      must(cudaMemset(in_, 0x5a, len), "cudaMemset");
      must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // other streams do not wait for it
      stream_ = cuda_engine().create_stream();
    } catch (...) {
      free_all();
      throw;
    }
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    cuda_engine().destroy_stream(stream_);
    free_all();
  }

  std::uint8_t* in() const { return in_; }
  std::uint8_t* out() const { return out_; }
  std::uint8_t* tag() const { return tag_; }
  Stream stream() const { return stream_; }
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_); }

 private:
  static std::uint8_t* allocate(std::size_t len) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, len), "cudaMalloc");
    return static_cast<std::uint8_t*>(memory);
  }
  void free_all() {
    cudaFree(in_);
    cudaFree(out_);
    cudaFree(tag_);
  }

  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
  std::uint8_t* tag_ = nullptr;
  Stream stream_ = nullptr;
};

// Time on a device between two points of a stream.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    must(cudaEventCreate(&start_), "cudaEventCreate");
    must(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  // Milliseconds that what `enqueue` puts on the stream takes. Waits for it.
  template <class Enqueue>
  double milliseconds(Enqueue&& enqueue) {
    must(cudaEventRecord(start_, stream_), "cudaEventRecord");
    enqueue();
    must(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    must(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

}  // namespace warpcipher::bench
